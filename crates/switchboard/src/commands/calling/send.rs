//! `switchboard send`: sends a message and waits for what comes of it.

use std::io::IsTerminal;
use std::process::ExitCode;

use switchboard_a2a::{ContextId, SendConfiguration, SendResponse, TaskId};
use switchboard_client::Outcome;

use crate::cli::CallFlags;
use crate::commands::calling::follow::{self, End, Style};
use crate::commands::calling::message::{self, MessageFlags};
use crate::commands::calling::{Call, agent_and_rest, clean, run as run_async, shown};
use crate::printer::Printer;

/// What to send, and how to wait.
#[derive(Debug, Clone, clap::Args)]
pub struct Wishes {
    #[command(flatten)]
    message: MessageFlags,

    /// Answer a task that waits for you, or add to one that is at work
    #[arg(long, value_name = "ID", env = "A2ACLI_TASK_ID")]
    task_id: Option<String>,

    /// Go on with a conversation: a new task that knows of the others in it
    #[arg(long, value_name = "ID", env = "A2ACLI_CONTEXT_ID")]
    context_id: Option<String>,

    /// Return at once with the task's id, and let the agent work
    #[arg(long = "async", visible_aliases = ["no-wait", "return-immediately"], conflicts_with_all = ["stream", "fail"])]
    is_async: bool,

    /// Show everything as it comes; with -o json one event a line
    #[arg(long)]
    stream: bool,

    /// Exit with 1 if the task did not complete; without it that is no failure of this command
    #[arg(long)]
    fail: bool,
}

/// Sends.
#[must_use]
pub fn run(words: Vec<String>, wishes: &Wishes, flags: &CallFlags, printer: Printer) -> ExitCode {
    run_async(printer, async {
        let (agent, text) = agent_and_rest(words, flags)?;
        let mut message = wishes.message.message(&text)?;
        message.task_id = wishes.task_id.as_deref().map(TaskId::from);
        message.context_id = wishes.context_id.as_deref().map(ContextId::from);
        let mut request = message::request(message);
        let call = Call::open(&agent, flags).await?;
        if wishes.is_async {
            request.configuration =
                Some(SendConfiguration { return_immediately: true, ..SendConfiguration::default() });
            let answer = call.ask(call.client.send(&call.context, request)).await?;
            return Ok(begun(&call, answer, printer));
        }
        let is_live = wishes.stream || !printer.is_json() && std::io::stdout().is_terminal();
        let opening = call.client.stream(&call.context, request);
        let (response, is_written) = match follow::follow(&call, opening, Style { printer, is_live }).await? {
            End::Done(response, is_written) => (*response, is_written),
            End::Interrupted(code) => return Ok(code),
        };
        let outcome = match (printer.is_json(), wishes.stream) {
            (false, _) => follow::show(&call, response, is_written, printer),
            (true, false) => {
                printer.json(&response);
                Outcome::from(response)
            }
            (true, true) => Outcome::from(response),
        };
        Ok(exit(&outcome, wishes.fail))
    })
}

fn exit(outcome: &Outcome, fail: bool) -> ExitCode {
    if fail && !outcome.is_success() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Says what was begun; it may be over already.
fn begun(call: &Call, answer: SendResponse, printer: Printer) -> ExitCode {
    if printer.is_json() {
        printer.json(&answer);
        return ExitCode::SUCCESS;
    }
    match answer {
        SendResponse::Task(task) if !task.status.state.is_terminal() => {
            shown::fields(&task).iter().for_each(|field| printer.line(field));
            printer.note(&format!("next: {}", call.command("task get", &clean::word(task.id.as_str()))));
        }
        SendResponse::Task(task) => shown::task(&task, printer),
        SendResponse::Message(_) => drop(follow::show(call, answer, false, printer)),
    }
    ExitCode::SUCCESS
}
