//! Follows a task to its end while showing what comes: pieces for people, lines of JSON for programs.

use std::process::ExitCode;

use switchboard_a2a::{SendResponse, StreamResponse, Task};
use switchboard_client::{ClientError, Followed, Outcome, Update};

use crate::commands::calling::interrupt::Interrupt;
use crate::commands::calling::live::Live;
use crate::commands::calling::progress::{Progress, TICK};
use crate::commands::calling::{Call, Failure, clean, shown};
use crate::printer::Printer;

/// How what comes is shown.
#[derive(Clone, Copy)]
pub(super) struct Style {
    pub(super) printer: Printer,
    /// Whether events are shown as they come: pieces of text, or lines of JSON.
    pub(super) is_live: bool,
}

/// How following ended.
pub(super) enum End {
    /// With a result. Whether its text is on standard output already.
    Done(Box<SendResponse>, bool),
    /// By Ctrl-C; everything is said.
    Interrupted(ExitCode),
}

/// Opens and follows.
pub(super) async fn follow(
    call: &Call,
    opening: impl Future<Output = Result<Followed, ClientError>>,
    style: Style,
) -> Result<End, Failure> {
    let Style { printer, is_live } = style;
    let mut interrupt = Interrupt::new();
    let mut progress = Progress::new(printer);
    let mut ticks = tokio::time::interval(TICK);
    let mut live = Live::new(printer);
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
            live.end_line();
            return Ok(End::Interrupted(interrupt.settle(call, followed.task(), printer).await));
        };
        progress.clear();
        match heard {
            Ok(Some(update)) => {
                tell(&update, style, &mut progress, &mut live);
                if is_pause(&update) {
                    break;
                }
            }
            Ok(None) => break,
            Err(error) => {
                live.end_line();
                return Err(call.failed(&with_task(error, followed.task())));
            }
        }
    }
    live.end_line();
    let response = followed.response();
    let response = response.ok_or_else(|| Failure::internal("the agent's stream ended without anything on it"));
    Ok(End::Done(Box::new(response?), is_live && live.has_written))
}

/// Whether the agent has begun to wait for somebody, which may take days. A picture of a task that waits does not count: it
/// may wait for the message that was just sent.
fn is_pause(update: &Update) -> bool {
    let Update::Event(event) = update else { return false };
    matches!(&**event, StreamResponse::StatusUpdate(update) if update.status.state.is_interrupted())
}

fn tell(update: &Update, style: Style, progress: &mut Progress, live: &mut Live) {
    let Style { printer, is_live } = style;
    match update {
        Update::Event(event) => {
            progress.hear(event);
            match (is_live, printer.is_json()) {
                (true, true) => printer.json_line::<StreamResponse>(event),
                (true, false) => live.hear(event),
                (false, _) => {}
            }
        }
        Update::Lost { why, attempt } => {
            printer.note(&format!(
                "the connection was lost ({}); taking it up again, attempt {attempt}",
                clean::line(why)
            ));
        }
        Update::Gap(gap) => printer.warning(&clean::line(&gap.to_string())),
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

/// Shows a result to people: its text on standard output, what it takes to go on on standard error.
pub(super) fn show(call: &Call, response: SendResponse, is_written: bool, printer: Printer) -> Outcome {
    let outcome = Outcome::from(response);
    tell_text(&outcome, is_written, printer);
    let Some(task) = outcome.task() else { return outcome };
    shown::fields(task).iter().for_each(|field| printer.note(field));
    let id = clean::word(task.id.as_str());
    match &outcome {
        Outcome::InputRequired(_) => {
            printer.note(&format!("next: {}", call.command("send", &format!("--task-id {id} 'your answer'"))));
        }
        Outcome::AuthRequired(_) | Outcome::Unfinished(_) => {
            printer.note(&format!("next: {}", call.command("task subscribe", &id)));
        }
        _ => {}
    }
    outcome
}

/// Shows a turn of a conversation: its text, and how it ended unless that is as one expects.
pub(super) fn tell_turn(response: SendResponse, is_written: bool, printer: Printer) {
    let outcome = Outcome::from(response);
    tell_text(&outcome, is_written, printer);
    if !outcome.is_success()
        && let Some(task) = outcome.task()
    {
        printer.note(&format!("state: {}", shown::state(task.status.state)));
    }
}

fn tell_text(outcome: &Outcome, is_written: bool, printer: Printer) {
    let says_more = match outcome {
        Outcome::Replied(_) => true,
        Outcome::Completed(_) | Outcome::Unfinished(_) => !is_written,
        Outcome::Failed(task)
        | Outcome::Canceled(task)
        | Outcome::Rejected(task)
        | Outcome::InputRequired(task)
        | Outcome::AuthRequired(task) => !is_written || task.status.message.is_some(),
    };
    if says_more {
        printer.line(clean::text(&outcome.text()).trim_end_matches('\n'));
    }
}
