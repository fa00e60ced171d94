//! `switchboard task subscribe`: follows a task to its terminal or interrupted state.

use std::process::ExitCode;

use switchboard_a2a::{SendResponse, TaskId};
use switchboard_client::Outcome;
use switchboard_host::printer::Printer;

use crate::cli::CallFlags;
use crate::commands::calling::follow::{self, End, Style};
use crate::commands::calling::printed_artifacts::PrintedArtifacts;
use crate::commands::calling::{AgentCall, agent_and_words, run as run_async};

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct SubscribeOptions {
    /// Show every event as it comes; with -o json one event a line. Without it, -o json prints the task once it ends
    #[arg(long)]
    stream: bool,

    /// Exit with 1 if the task did not complete; without it that is no failure of this command
    #[arg(long)]
    fail: bool,
}

pub(crate) fn run(words: Vec<String>, options: &SubscribeOptions, flags: &CallFlags, printer: Printer) -> ExitCode {
    run_async(printer, async {
        let (agent, [id]) = agent_and_words(words, flags, ["the id of the task"])?;
        let call = AgentCall::open(&agent, flags).await?;
        let opening = call.client.subscribe(&call.context, TaskId::from(id));
        let style = Style {
            is_live: options.stream || !printer.is_json(),
            shows_states: options.stream,
            ..Style::quiet(printer, flags.verbose)
        };
        let (response, written) = match follow::follow(&call, opening, style, &PrintedArtifacts::default()).await? {
            End::Interrupted(code) => return Ok(code),
            End::Done(response, written) => (*response, written),
        };
        if !printer.is_json() {
            return Ok(follow::exit(&follow::show(&call, response, &written, style), options.fail));
        }
        match &response {
            _ if options.stream => {}
            SendResponse::Task(task) => printer.json(task),
            SendResponse::Message(message) => printer.json(message),
        }
        let outcome = Outcome::from(response);
        follow::print_next(&call, &outcome, printer);
        Ok(follow::exit(&outcome, options.fail))
    })
}
