//! `switchboard task get`: a task as it is, or as it ends.

use std::process::ExitCode;

use switchboard_a2a::TaskId;

use crate::cli::CallFlags;
use crate::commands::calling::follow::{self, End, Style};
use crate::commands::calling::{Call, agent_and_words, run as run_async, shown};
use crate::printer::Printer;

/// How much of it.
#[derive(Debug, Clone, clap::Args)]
pub struct Wishes {
    /// Show the last so many messages too
    #[arg(long, value_name = "COUNT", default_value_t = 0, hide_default_value = true)]
    history: u32,

    /// Wait until it ends or waits for you
    #[arg(long, visible_alias = "watch")]
    wait: bool,
}

/// Shows it.
#[must_use]
pub fn run(words: Vec<String>, wishes: Wishes, flags: &CallFlags, printer: Printer) -> ExitCode {
    run_async(printer, async {
        let (agent, [id]) = agent_and_words(words, flags, ["the id of the task"])?;
        let call = Call::open(&agent, flags).await?;
        let id = TaskId::from(id);
        let read = || call.ask(call.client.get(&call.context, &id, Some(wishes.history)));
        let mut task = read().await?;
        if wishes.wait && !task.status.state.is_terminal() && !task.status.state.is_interrupted() {
            let opening = call.client.subscribe(&call.context, id.clone());
            if let End::Interrupted(code) = follow::follow(&call, opening, Style { printer, is_live: false }).await? {
                return Ok(code);
            }
            task = read().await?;
        }
        match printer.is_json() {
            true => printer.json(&task),
            false => shown::task(&task, printer),
        }
        Ok(ExitCode::SUCCESS)
    })
}
