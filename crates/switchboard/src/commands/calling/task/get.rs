//! `switchboard task get`: a task as it is, or as it ends.

use std::collections::BTreeSet;

use switchboard_a2a::{SendResponse, TaskId};

use crate::commands::calling::follow::{self, Style};
use crate::commands::calling::printed_artifacts::PrintedArtifacts;
use crate::commands::calling::{AgentCall, Failure, OneLine, line_breaks};

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct GetOptions {
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

pub(crate) async fn run(call: AgentCall<'_>, [id]: [String; 1], options: GetOptions) -> Result<(), Failure> {
    let printer = call.printer;
    let id = TaskId::from(id);
    let read = || call.ask(call.client.get(&call.context, &id, Some(options.history)));
    let mut task = read().await?;
    let style = Style::quiet(&call);
    if options.wait && !task.status.state.is_terminal() && !task.status.state.is_interrupted() {
        let opening = call.client.subscribe(&call.context, id.clone());
        follow::follow(&call, opening, style, &PrintedArtifacts::default()).await?;
        task = read().await?;
    }
    match printer.is_json() {
        true => options.line.print(&task, printer),
        false => {
            line_breaks::task(&mut task, &BTreeSet::new());
            style.task_printer().task(&task);
        }
    }
    if !options.wait {
        follow::print_files(&call, &task, printer);
    }
    let response = SendResponse::Task(task);
    if options.wait {
        follow::print_next(&call, &response, printer);
    }
    follow::exit(&response, options.fail)
}
