//! `switchboard send`: sends a message and waits for what comes of it.

use std::io::IsTerminal;
use std::process::ExitCode;

use switchboard_a2a::{ContextId, SendConfiguration, SendRequest, SendResponse, TaskId};
use switchboard_host::printer::Printer;

use crate::cli::settings::Settings;
use crate::cli::{CallFlags, MessageWords};
use crate::commands::calling::follow::{self, Form, Style};
use crate::commands::calling::message::{self, MessageFlags};
use crate::commands::calling::printed_artifacts::PrintedArtifacts;
use crate::commands::calling::task_output::WrittenOutput;
use crate::commands::calling::{AgentCall, Call, Failure, agent_and_rest, run as run_async, sanitize};

const WAITING: &str = "How to wait for the answer";

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct SendOptions {
    #[command(flatten)]
    message: MessageFlags,

    /// Answer the task with this id, which waits for you, or add to it while it runs
    #[arg(long, value_name = "ID", env = "A2ACLI_TASK_ID", hide_env_values = true)]
    task_id: Option<String>,

    /// Go on with the conversation (context) that has this id: a new task that knows of the others in it
    #[arg(long, value_name = "ID", env = "A2ACLI_CONTEXT_ID", hide_env_values = true)]
    context_id: Option<String>,

    /// Return at once with the task's id, and let the agent work
    #[arg(long = "async", help_heading = WAITING, visible_aliases = ["no-wait", "return-immediately"],
        conflicts_with_all = ["stream", "fail", "wait", "quiet"])]
    is_async: bool,

    /// Wait until the task has ended or needs you, which is usual, whatever A2ACLI_ASYNC says
    #[arg(long, help_heading = WAITING, visible_alias = "watch")]
    wait: bool,

    /// Show everything as it comes; with -o json one event a line
    #[arg(long, help_heading = WAITING)]
    stream: bool,

    /// Print nothing but the text of the answer
    #[arg(short, long, help_heading = WAITING, conflicts_with_all = ["stream", "verbose"])]
    pub(crate) quiet: bool,

    /// Exit with 1 if the task did not complete; without it that is no failure of this command
    #[arg(long, help_heading = WAITING)]
    fail: bool,
}

impl SendOptions {
    /// A setting for all sends gives way to any flag that means the opposite.
    fn is_async(&self, flags: &CallFlags) -> Result<bool, Failure> {
        if self.is_async || self.wait || self.stream || self.fail || self.quiet {
            return Ok(self.is_async);
        }
        Settings::load(flags.config.as_deref())?.is_set("A2ACLI_ASYNC")
    }
}

pub(crate) fn run(typed: Call<MessageWords, SendOptions>, printer: Printer) -> Result<(), ExitCode> {
    let Call { words, options, flags } = &typed;
    run_async(printer, async {
        let (agent, text) = agent_and_rest(words.clone().into(), flags)?;
        let mut message = options.message.message(&text)?;
        message.task_id = options.task_id.as_deref().map(TaskId::from);
        message.context_id = options.context_id.as_deref().map(ContextId::from);
        let is_async = options.is_async(flags)?;
        let call = AgentCall::open(&agent, flags, printer).await?;
        let style = Style {
            form: if options.quiet { Form::Plain } else { Form::Labeled },
            // Without labels artifacts could not be told apart, and the answer must be the same wherever it goes.
            is_live: options.stream || !options.quiet && !printer.is_json() && std::io::stdout().is_terminal(),
            shows_states: options.stream,
            ..Style::quiet(&call)
        };
        if flags.verbose && !printer.is_json() {
            style.task_printer().message("sent", &message);
        }
        let is_answer = message.task_id.is_some();
        let request = message::request(message);
        let sent =
            if is_async { begin(&call, request, style).await } else { wait(&call, request, options, style).await };
        // Only the agent can judge the ids; `--debug` shows its whole reply.
        sent.map_err(|failure| if is_answer { failure.pointing_at_debug() } else { failure })
    })
}

async fn begin(call: &AgentCall<'_>, mut request: SendRequest, style: Style) -> Result<(), Failure> {
    request.configuration = Some(SendConfiguration { return_immediately: true, ..SendConfiguration::default() });
    let answer = call.ask(call.client.send(&call.context, request)).await?;
    begun(call, answer, style);
    Ok(())
}

async fn wait(call: &AgentCall<'_>, request: SendRequest, options: &SendOptions, style: Style) -> Result<(), Failure> {
    let opening = call.client.stream(&call.context, request);
    let followed = follow::follow(call, opening, style, &PrintedArtifacts::default()).await?;
    follow::finish(call, followed, style, options.fail, |response| {
        if !options.stream {
            style.printer.json(response);
        }
    })
}

/// Prints the new task, which may have ended already.
fn begun(call: &AgentCall<'_>, answer: SendResponse, style: Style) {
    let printer = style.printer;
    match answer {
        answer if printer.is_json() => printer.json(&answer),
        SendResponse::Task(task) if !task.status.state.is_terminal() => {
            style.task_printer().ids(&task);
            let id = sanitize::shell_word(task.id.as_str());
            printer.note(&format!("next: {}", call.command("task get", &format!("--wait {id}"))));
        }
        mut answer => follow::show(call, &mut answer, &WrittenOutput::default(), style),
    }
}
