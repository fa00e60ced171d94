//! Follows a task to its end while showing what comes: pieces for people, lines of JSON for programs.

use std::process::ExitCode;

use switchboard_a2a::{PartContent, SendResponse, StreamResponse, Task};
use switchboard_client::{ClientError, Outcome, TaskStream, Update};
use switchboard_host::printer::Printer;

use crate::commands::calling::answer::AnswerOption;
use crate::commands::calling::interrupt::Interrupt;
use crate::commands::calling::live::Live;
use crate::commands::calling::progress::{Progress, TICK};
use crate::commands::calling::shown::{Page, Written};
use crate::commands::calling::shown_before::ShownBefore;
use crate::commands::calling::{Call, Failure, answer, apart, sanitize, shown};

const ASKS: &str = "the agent asks and waits for an answer";

/// How what comes is shown.
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

/// How text is laid out.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// With labels, the same everywhere.
    Labeled,
    /// Nothing but what the agent says.
    Plain,
}

impl Style {
    /// Nothing is shown before the end.
    pub(super) fn quiet(printer: Printer, is_verbose: bool) -> Self {
        Self { printer, form: Form::Labeled, is_live: false, shows_states: false, is_verbose }
    }

    pub(super) fn page(self) -> Page {
        Page { printer: self.printer, is_verbose: self.is_verbose }
    }
}

/// How following ended.
pub(super) enum End {
    /// With a result, and what of it is on standard output already.
    Done(Box<SendResponse>, Written),
    /// By Ctrl-C; everything is said.
    Interrupted(ExitCode),
}

/// Opens and follows.
pub(super) async fn follow(
    call: &Call,
    opening: impl Future<Output = Result<TaskStream, ClientError>>,
    style: Style,
    before: &ShownBefore,
) -> Result<End, Failure> {
    let Style { printer, .. } = style;
    let mut interrupt = Interrupt::new();
    let mut progress = Progress::new(printer, !call.is_debug, !style.shows_states && style.form == Form::Labeled);
    let mut ticks = tokio::time::interval(TICK);
    let mut live = Live::new(style);
    let mut opening = std::pin::pin!(call.ask(opening));
    let mut followed = loop {
        tokio::select! {
            opened = &mut opening => break opened?,
            _ = ticks.tick() => progress.draw(),
            () = interrupt.pressed() => {
                progress.clear();
                return Ok(End::Interrupted(interrupt.settle(call, None, printer).await));
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
                    _ = ticks.tick() => if live.is_at_line_start() { progress.draw() },
                    () = interrupt.pressed() => break None,
                }
            }
        };
        let Some(heard) = heard else {
            progress.clear();
            live.close();
            return Ok(End::Interrupted(interrupt.settle(call, followed.task(), printer).await));
        };
        progress.clear();
        match heard {
            Ok(Some(update)) => tell(&update, style, &mut progress, &mut live, before),
            Ok(None) => break,
            Err(error) => {
                live.close();
                let known = followed.task().map(|task| task.id.clone());
                let failure = call.failed(&with_task(error, followed.task())).await;
                return Err(match &known {
                    Some(task) => failure.about(task, call),
                    None => failure,
                });
            }
        }
    }
    live.close();
    let response = followed.response();
    let response = response.ok_or_else(|| Failure::internal("the agent's stream ended without anything on it"));
    Ok(End::Done(Box::new(response?), live.written))
}

fn tell(update: &Update, style: Style, progress: &mut Progress, live: &mut Live, before: &ShownBefore) {
    let printer = style.printer;
    match update {
        Update::Event(event) => {
            progress.hear(event);
            live.written.hear(event);
            match (style.is_live, printer.is_json()) {
                (true, true) => printer.json_line::<StreamResponse>(event),
                (true, false) => match &**event {
                    StreamResponse::Task(task) => {
                        let mut task = task.clone();
                        before.leave_out(&mut task);
                        live.hear(&StreamResponse::Task(task));
                    }
                    event => live.hear(event),
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

/// Time that is up for the command says nothing of the task yet.
fn with_task(error: ClientError, known: Option<&Task>) -> ClientError {
    match error {
        ClientError::Timeout { origin, after, task: None } => {
            ClientError::Timeout { origin, after, task: known.map(|task| task.id.clone()) }
        }
        error => error,
    }
}

/// Shows a result to people, and what can be done next.
pub(super) fn show(call: &Call, mut response: SendResponse, written: &Written, style: Style) -> Outcome {
    apart::response(&mut response, &written.whole);
    let outcome = Outcome::from(response);
    match style.form {
        Form::Labeled => style.page().outcome(&outcome, written),
        Form::Plain => tell_text(&outcome, written, style.printer),
    }
    tell_next(call, &outcome, style.printer);
    outcome
}

/// Says on standard error what is not as one expects, and the command to go on with.
pub(super) fn tell_next(call: &Call, outcome: &Outcome, printer: Printer) {
    let Some(task) = outcome.task() else { return };
    let id = sanitize::shell_word(task.id.as_str());
    if let Some(commands) = answer_commands(call, task).filter(|_| !printer.is_json()) {
        printer.warning(ASKS);
        return printer.note(&commands);
    }
    let (warning, next) = match outcome {
        Outcome::Failed(_) => ("the task has failed", None),
        Outcome::Rejected(_) => ("the agent has refused the task", None),
        Outcome::Canceled(_) => ("the task was canceled", None),
        Outcome::InputRequired(_) => (ASKS, Some(("send", format!("--task-id {id} 'your answer'")))),
        Outcome::AuthRequired(_) => {
            ("the agent waits until you have given it access; then it goes on", Some(("task subscribe", id)))
        }
        Outcome::Unfinished(_) => ("the task has not ended", Some(("task get", format!("--wait {id}")))),
        Outcome::Replied(_) | Outcome::Completed(_) => return tell_files(call, task, printer),
    };
    printer.warning(warning);
    match next {
        Some((command, rest)) if !printer.is_json() => {
            printer.note(&format!("next: {}", call.command(command, &rest)));
        }
        _ => tell_files(call, task, printer),
    }
}

/// The command for each answer that the agent offers, if it does.
fn answer_commands(call: &Call, task: &Task) -> Option<String> {
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

/// Says on standard error how to get at what cannot be shown.
pub(super) fn tell_files(call: &Call, task: &Task, printer: Printer) {
    let mut parts = task.artifacts.iter().flat_map(|artifact| &artifact.parts);
    if !printer.is_json() && parts.any(|part| matches!(part.content, PartContent::Raw(_))) {
        let id = sanitize::shell_word(task.id.as_str());
        printer.note(&format!("next: {}", call.command("task download", &id)));
    }
}

/// What a result means to whoever started the command.
pub(super) fn exit(outcome: &Outcome, fail: bool) -> ExitCode {
    if fail && !outcome.is_success() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Shows a turn of a conversation: its text, and how it ended unless that is as one expects.
pub(super) fn tell_turn(mut response: SendResponse, written: &Written, style: Style) {
    apart::response(&mut response, &written.whole);
    let outcome = Outcome::from(response);
    if style.form == Form::Labeled {
        style.page().outcome(&outcome, written);
        return;
    }
    tell_text(&outcome, written, style.printer);
    match (&outcome, outcome.task()) {
        (Outcome::Completed(_) | Outcome::InputRequired(_), _) | (_, None) => {}
        (_, Some(task)) => style.printer.note(&format!("state: {}", shown::state(task.status.state))),
    }
}

fn tell_text(outcome: &Outcome, written: &Written, printer: Printer) {
    let says_more = match outcome {
        Outcome::Replied(_) => true,
        Outcome::Completed(_) | Outcome::Unfinished(_) => !written.artifacts,
        Outcome::Failed(task)
        | Outcome::Canceled(task)
        | Outcome::Rejected(task)
        | Outcome::InputRequired(task)
        | Outcome::AuthRequired(task) => !written.artifacts || task.status.message.is_some(),
    };
    if says_more {
        printer.line(sanitize::text(&outcome.text()).trim_end_matches('\n'));
    }
    let options = outcome.task().map(|task| answer::options(&task.status)).unwrap_or_default();
    if !options.is_empty() {
        printer.line(shown::option_lines(&options));
    }
}
