//! `switchboard task cancel`: stops a task.

use std::process::ExitCode;

use switchboard_a2a::TaskId;
use switchboard_host::printer::Printer;

use crate::cli::TaskWords;
use crate::commands::calling::message::MetadataFlag;
use crate::commands::calling::task_output::TaskPrinter;
use crate::commands::calling::{AgentCall, Call, Failure, OneLine};
use crate::commands::live_tasks;

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct CancelOptions {
    #[command(flatten)]
    metadata: MetadataFlag,

    #[command(flatten)]
    line: OneLine,
}

/// Without an agent the server of the workspace is asked.
pub(crate) fn run(call: Call<TaskWords, CancelOptions>, printer: Printer) -> Result<(), ExitCode> {
    if call.flags.agent_card.is_none()
        && let [id] = Vec::from(call.words.clone()).as_slice()
    {
        return live_tasks::cancel(&call.flags.workspace, id.clone(), printer);
    }
    call.open(["the id of the task"], printer, cancel)
}

async fn cancel(call: AgentCall<'_>, [id]: [String; 1], options: CancelOptions) -> Result<(), Failure> {
    let metadata = options.metadata.read()?;
    let metadata = (!metadata.is_empty()).then_some(metadata);
    let task = call.ask(call.client.cancel(&call.context, &TaskId::from(id), metadata)).await?;
    match call.printer.is_json() {
        true => options.line.print(&task, call.printer),
        false => TaskPrinter { printer: call.printer, is_verbose: call.flags.verbose }.ids(&task),
    }
    Ok(())
}
