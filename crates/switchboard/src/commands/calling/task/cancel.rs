//! `switchboard task cancel`: stops a task.

use std::process::ExitCode;

use switchboard_a2a::TaskId;

use crate::cli::CallFlags;
use crate::commands::calling::{Call, agent_and_words, run as run_async, shown};
use crate::printer::Printer;

/// Stops it.
#[must_use]
pub fn run(words: Vec<String>, flags: &CallFlags, printer: Printer) -> ExitCode {
    run_async(printer, async {
        let (agent, [id]) = agent_and_words(words, flags, ["the id of the task"])?;
        let call = Call::open(&agent, flags).await?;
        let task = call.ask(call.client.cancel(&call.context, &TaskId::from(id), None)).await?;
        match printer.is_json() {
            true => printer.json(&task),
            false => shown::fields(&task).iter().for_each(|field| printer.line(field)),
        }
        Ok(ExitCode::SUCCESS)
    })
}
