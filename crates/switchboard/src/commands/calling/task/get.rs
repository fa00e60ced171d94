//! `switchboard task get`: a task as it is, or as it ends.

use std::collections::BTreeSet;
use std::process::ExitCode;

use switchboard_a2a::TaskId;
use switchboard_client::Outcome;
use switchboard_host::printer::Printer;

use crate::cli::CallFlags;
use crate::commands::calling::follow::{self, End, Style};
use crate::commands::calling::shown_before::ShownBefore;
use crate::commands::calling::{Call, OneLine, agent_and_words, apart, run as run_async};

/// How much of it.
#[derive(Debug, Clone, clap::Args)]
pub struct Wishes {
    /// Show the last so many messages of the conversation too
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    history: u32,

    /// Wait until it ends or waits for you
    #[arg(long, visible_alias = "watch")]
    wait: bool,

    /// Exit with 1 if the task is not completed; without it that is no failure of this command
    #[arg(long)]
    fail: bool,

    #[command(flatten)]
    line: OneLine,
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
        let style = Style::quiet(printer, flags.verbose);
        if wishes.wait && !task.status.state.is_terminal() && !task.status.state.is_interrupted() {
            let opening = call.client.subscribe(&call.context, id.clone());
            if let End::Interrupted(code) = follow::follow(&call, opening, style, &ShownBefore::default()).await? {
                return Ok(code);
            }
            task = read().await?;
        }
        match printer.is_json() {
            true => wishes.line.print(&task, printer),
            false => {
                apart::task(&mut task, &BTreeSet::new());
                style.page().task(&task);
            }
        }
        if !wishes.wait {
            follow::tell_files(&call, &task, printer);
        }
        let outcome = Outcome::from(task);
        if wishes.wait {
            follow::tell_next(&call, &outcome, printer);
        }
        Ok(follow::exit(&outcome, wishes.fail))
    })
}
