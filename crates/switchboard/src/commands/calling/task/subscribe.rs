//! `switchboard task subscribe`: follows a task to its terminal or interrupted state.

use switchboard_a2a::{SendResponse, TaskId};

use crate::commands::calling::follow::{self, Style};
use crate::commands::calling::printed_artifacts::PrintedArtifacts;
use crate::commands::calling::{AgentCall, Failure};

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct SubscribeOptions {
    /// Show every event as it comes; with -o json one event a line. Without it, -o json prints the task once it ends
    #[arg(long)]
    stream: bool,

    /// Exit with 1 if the task did not complete; without it that is no failure of this command
    #[arg(long)]
    fail: bool,
}

pub(crate) async fn run(call: AgentCall<'_>, [id]: [String; 1], options: SubscribeOptions) -> Result<(), Failure> {
    let printer = call.printer;
    let opening = call.client.subscribe(&call.context, TaskId::from(id));
    let style =
        Style { is_live: options.stream || !printer.is_json(), shows_states: options.stream, ..Style::quiet(&call) };
    let followed = follow::follow(&call, opening, style, &PrintedArtifacts::default()).await?;
    follow::finish(&call, followed, style, options.fail, |response| match response {
        _ if options.stream => {}
        SendResponse::Task(task) => printer.json(task),
        SendResponse::Message(message) => printer.json(message),
    })
}
