//! `switchboard task subscribe`: watches a task until it ends or waits for somebody.

use std::process::ExitCode;

use switchboard_a2a::TaskId;

use crate::cli::CallFlags;
use crate::commands::calling::follow::{self, End, Style};
use crate::commands::calling::{Call, agent_and_words, run as run_async};
use crate::printer::Printer;

/// Watches it.
#[must_use]
pub fn run(words: Vec<String>, flags: &CallFlags, printer: Printer) -> ExitCode {
    run_async(printer, async {
        let (agent, [id]) = agent_and_words(words, flags, ["the id of the task"])?;
        let call = Call::open(&agent, flags).await?;
        let opening = call.client.subscribe(&call.context, TaskId::from(id));
        match follow::follow(&call, opening, Style { printer, is_live: true }).await? {
            End::Interrupted(code) => return Ok(code),
            End::Done(response, is_written) if !printer.is_json() => {
                follow::show(&call, *response, is_written, printer);
            }
            End::Done(..) => {}
        }
        Ok(ExitCode::SUCCESS)
    })
}
