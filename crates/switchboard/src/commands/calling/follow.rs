//! Follows a task to its terminal or interrupted state and prints its events: text as it streams, or one JSON event a line.

use switchboard_a2a::{PartContent, SendResponse, StreamResponse, Task, TaskState};
use switchboard_client::{ClientError, TaskStream, Update, is_explained, response_text};
use switchboard_host::printer::Printer;

use crate::commands::calling::answer::AnswerOption;
use crate::commands::calling::failure::FAILED;
use crate::commands::calling::interrupt::{INTERRUPTED, Interrupt};
use crate::commands::calling::printed_artifacts::PrintedArtifacts;
use crate::commands::calling::progress::{Progress, TICK};
use crate::commands::calling::stream_printer::StreamPrinter;
use crate::commands::calling::task_output::{TaskPrinter, WrittenOutput};
use crate::commands::calling::{AgentCall, Failure, answer, line_breaks, sanitize, task_output};

const ASKS: &str = "the agent asks and waits for an answer";

#[derive(Clone, Copy)]
pub(super) struct Style {
    pub(super) printer: Printer,
    pub(super) form: Form,
    /// Whether events are shown as they come: pieces of text, or lines of JSON.
    pub(super) is_live: bool,
    /// Whether states are shown among them.
    pub(super) shows_states: bool,
    pub(super) is_verbose: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// With labels, the same everywhere.
    Labeled,
    /// Nothing but what the agent says.
    Plain,
}

impl Style {
    /// Nothing is shown before the end.
    pub(super) fn quiet(call: &AgentCall<'_>) -> Self {
        let (printer, is_verbose) = (call.printer, call.flags.verbose);
        Self { printer, form: Form::Labeled, is_live: false, shows_states: false, is_verbose }
    }

    pub(super) fn task_printer(self) -> TaskPrinter {
        TaskPrinter { printer: self.printer, is_verbose: self.is_verbose }
    }
}

/// Opens the stream and follows it to its result; also returns what of it is on standard output already.
pub(super) async fn follow(
    call: &AgentCall<'_>,
    opening: impl Future<Output = Result<TaskStream, ClientError>>,
    style: Style,
    before: &PrintedArtifacts,
) -> Result<(SendResponse, WrittenOutput), Failure> {
    let Style { printer, .. } = style;
    let mut interrupt = Interrupt::new();
    let mut progress = Progress::new(printer, !call.flags.debug, !style.shows_states && style.form == Form::Labeled);
    let mut ticks = tokio::time::interval(TICK);
    let mut stream_printer = StreamPrinter::new(style);
    let mut opening = std::pin::pin!(call.ask(opening));
    let mut followed = loop {
        tokio::select! {
            opened = &mut opening => break opened?,
            _ = ticks.tick() => progress.draw(),
            () = interrupt.pressed() => {
                progress.clear();
                interrupt.settle(call, None, printer).await;
                return Err(Failure::silent(INTERRUPTED));
            }
        }
    };
    loop {
        let heard = {
            let mut next = std::pin::pin!(followed.next());
            let mut time_is_up = std::pin::pin!(call.time_is_up());
            loop {
                tokio::select! {
                    heard = &mut next => break Some(heard),
                    error = &mut time_is_up => break Some(Err(error)),
                    _ = ticks.tick() => if stream_printer.is_at_line_start { progress.draw() },
                    () = interrupt.pressed() => break None,
                }
            }
        };
        let Some(heard) = heard else {
            progress.clear();
            stream_printer.close();
            interrupt.settle(call, followed.task(), printer).await;
            return Err(Failure::silent(INTERRUPTED));
        };
        progress.clear();
        match heard {
            Ok(Some(update)) => print_update(&update, style, &mut progress, &mut stream_printer, before),
            Ok(None) => break,
            Err(error) => {
                stream_printer.close();
                let known = followed.task().map(|task| task.id.clone());
                let failure = call.failed(&with_task(error, followed.task())).await;
                return Err(match &known {
                    Some(task) => failure.about(task, call),
                    None => failure,
                });
            }
        }
    }
    stream_printer.close();
    let response = followed.response();
    let response = response.ok_or_else(|| Failure::internal("the agent's stream ended without anything on it"));
    Ok((response?, stream_printer.written))
}

fn print_update(
    update: &Update,
    style: Style,
    progress: &mut Progress,
    stream_printer: &mut StreamPrinter,
    before: &PrintedArtifacts,
) {
    let printer = style.printer;
    match update {
        Update::Event(event) => {
            progress.update(event);
            stream_printer.written.record(event);
            match (style.is_live, printer.is_json()) {
                (true, true) => printer.json_line::<StreamResponse>(event),
                (true, false) => match &**event {
                    StreamResponse::Task(task) => {
                        let mut task = task.clone();
                        before.remove_printed(&mut task);
                        stream_printer.print_event(&StreamResponse::Task(task));
                    }
                    event => stream_printer.print_event(event),
                },
                (false, _) => {}
            }
        }
        Update::Lost { why, attempt } => {
            printer.note(&format!(
                "the connection was lost ({}); taking it up again, attempt {attempt}",
                sanitize::line(why)
            ));
        }
        Update::Gap(gap) => printer.warning(&sanitize::line(&gap.to_string())),
    }
}

/// The timeout of the command does not know the task, so it is added here.
fn with_task(error: ClientError, known: Option<&Task>) -> ClientError {
    match error {
        ClientError::Timeout { origin, after, task: None } => {
            ClientError::Timeout { origin, after, task: known.map(|task| task.id.clone()) }
        }
        error => error,
    }
}

/// Prints a result as text, and the next command to type.
pub(super) fn show(call: &AgentCall<'_>, response: &mut SendResponse, written: &WrittenOutput, style: Style) {
    print_response(response, written, style);
    print_next(call, response, style.printer);
}

fn print_response(response: &mut SendResponse, written: &WrittenOutput, style: Style) {
    line_breaks::response(response, &written.whole);
    match style.form {
        Form::Labeled => style.task_printer().response(response, written),
        Form::Plain => print_text(response, written, style.printer),
    }
}

/// Prints on standard error an outcome other than success, and the next command to type.
pub(super) fn print_next(call: &AgentCall<'_>, response: &SendResponse, printer: Printer) {
    let Some(task) = response.task() else { return };
    let id = sanitize::shell_word(task.id.as_str());
    if let Some(commands) = answer_commands(call, task).filter(|_| !printer.is_json()) {
        printer.warning(ASKS);
        return printer.note(&commands);
    }
    let (warning, next) = match task.status.state {
        TaskState::Failed => ("the task has failed", None),
        TaskState::Rejected => ("the agent has refused the task", None),
        TaskState::Canceled => ("the task was canceled", None),
        TaskState::InputRequired => (ASKS, Some(("send", format!("--task-id {id} 'your answer'")))),
        TaskState::AuthRequired if waits_for_operator(task) => (DECIDED_BY_OPERATORS, Some(("task subscribe", id))),
        TaskState::AuthRequired => {
            ("the agent waits until you have given it access; then it goes on", Some(("task subscribe", id)))
        }
        TaskState::Unspecified | TaskState::Submitted | TaskState::Working => {
            ("the task has not ended", Some(("task get", format!("--wait {id}"))))
        }
        TaskState::Completed => return print_files(call, task, printer),
    };
    printer.warning(warning);
    match next {
        Some((command, rest)) if !printer.is_json() => {
            printer.note(&format!("next: {}", call.command(command, &rest)));
        }
        _ => print_files(call, task, printer),
    }
}

/// What is said of a task that no answer of its caller lets go on.
pub(super) const DECIDED_BY_OPERATORS: &str = "an operator decides whether it goes on: switchboard inbox";

/// Whether an operator has to decide an open question, as its status says.
pub(super) fn waits_for_operator(task: &Task) -> bool {
    let question: Option<serde_json::Value> =
        task.metadata.as_ref().and_then(|metadata| metadata.get("switchboard/question")?.read().ok());
    question.is_some_and(|question| question["reviewer"] == "operator")
}

/// The command for each answer that the agent offers, if it does.
fn answer_commands(call: &AgentCall<'_>, task: &Task) -> Option<String> {
    let options = answer::options(&task.status);
    let id = sanitize::shell_word(task.id.as_str());
    let command = |option: &AnswerOption| {
        // What begins with a dash would be taken for a flag.
        let dashes = if option.id.starts_with('-') { "-- " } else { "" };
        call.command("send", &format!("--task-id {id} {dashes}{}", sanitize::shell_word(&option.id)))
    };
    let commands: Vec<String> = options.iter().map(command).collect();
    (!commands.is_empty()).then(|| format!("next: one of\n  {}", commands.join("\n  ")))
}

/// Prints on standard error the command that downloads the files of a task.
pub(super) fn print_files(call: &AgentCall<'_>, task: &Task, printer: Printer) {
    let mut parts = task.artifacts.iter().flat_map(|artifact| &artifact.parts);
    if !printer.is_json() && parts.any(|part| matches!(part.content, PartContent::Raw(_))) {
        let id = sanitize::shell_word(task.id.as_str());
        printer.note(&format!("next: {}", call.command("task download", &id)));
    }
}

/// Prints the end of what was followed, as JSON with `print_json`, and the next command to type.
pub(super) fn finish(
    call: &AgentCall<'_>,
    (mut response, written): (SendResponse, WrittenOutput),
    style: Style,
    fail: bool,
    print_json: impl FnOnce(&SendResponse),
) -> Result<(), Failure> {
    match style.printer.is_json() {
        true => {
            print_json(&response);
            print_next(call, &response, style.printer);
        }
        false => show(call, &mut response, &written, style),
    }
    exit(&response, fail)
}

/// The result of a command with this response; `fail` makes one that is no success a failure.
pub(super) fn exit(response: &SendResponse, fail: bool) -> Result<(), Failure> {
    if fail && !response.is_success() { Err(Failure::silent(FAILED)) } else { Ok(()) }
}

/// Prints a turn of a conversation: its text, and its state unless that is completed or a question.
pub(super) fn print_turn(mut response: SendResponse, written: &WrittenOutput, style: Style) {
    print_response(&mut response, written, style);
    if let (Form::Plain, Some(state)) = (style.form, response.state())
        && !matches!(state, TaskState::Completed | TaskState::InputRequired)
    {
        style.printer.note(&format!("state: {}", task_output::state(state)));
    }
}

fn print_text(response: &SendResponse, written: &WrittenOutput, printer: Printer) {
    let says_more = response
        .task()
        .is_none_or(|task| !written.artifacts || is_explained(task.status.state) && task.status.message.is_some());
    if says_more {
        printer.line(sanitize::text(&response_text(response)).trim_end_matches('\n'));
    }
    let options = response.task().map(|task| answer::options(&task.status)).unwrap_or_default();
    if !options.is_empty() {
        printer.line(task_output::option_lines(&options));
    }
}
