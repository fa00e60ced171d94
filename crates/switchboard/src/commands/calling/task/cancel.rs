//! `switchboard task cancel`: stops a task.

use std::process::ExitCode;

use switchboard_a2a::TaskId;
use switchboard_host::printer::Printer;

use crate::cli::CallFlags;
use crate::commands::calling::message::MetadataFlag;
use crate::commands::calling::task_output::TaskPrinter;
use crate::commands::calling::{AgentCall, OneLine, agent_and_words, run as run_async};
use crate::commands::live_tasks;

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct CancelOptions {
    #[command(flatten)]
    metadata: MetadataFlag,

    #[command(flatten)]
    line: OneLine,
}

pub(crate) fn run(words: Vec<String>, options: &CancelOptions, flags: &CallFlags, printer: Printer) -> ExitCode {
    if flags.agent_card.is_none()
        && let [id] = words.as_slice()
    {
        return live_tasks::cancel(&flags.workspace, id.clone(), printer);
    }
    run_async(printer, async {
        let (agent, [id]) = agent_and_words(words, flags, ["the id of the task"])?;
        let metadata = options.metadata.read()?;
        let metadata = (!metadata.is_empty()).then_some(metadata);
        let call = AgentCall::open(&agent, flags).await?;
        let task = call.ask(call.client.cancel(&call.context, &TaskId::from(id), metadata)).await?;
        match printer.is_json() {
            true => options.line.print(&task, printer),
            false => TaskPrinter { printer, is_verbose: flags.verbose }.ids(&task),
        }
        Ok(ExitCode::SUCCESS)
    })
}
