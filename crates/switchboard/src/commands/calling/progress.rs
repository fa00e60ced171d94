//! Progress of a call on standard error: a spinner on a terminal, one line per status change anywhere else.

use std::time::{Duration, Instant};

use switchboard_a2a::{StreamResponse, TaskStatus};
use switchboard_host::printer::Printer;

use crate::commands::StatusLine;
use crate::commands::calling::{sanitize, task_output};

/// How often the spinner is redrawn.
pub(super) const TICK: Duration = Duration::from_millis(120);

const FRAMES: [char; 4] = ['|', '/', '-', '\\'];
/// The most characters of a status message on the line.
const LONGEST: usize = 60;

pub(super) struct Progress {
    printer: Printer,
    /// The spinner, if there is one; else each change may be a line.
    line: Option<StatusLine>,
    prints_changes: bool,
    since: Instant,
    frame: usize,
    status_text: String,
}

impl Progress {
    /// No spinner with `--debug`, or where a line cannot be drawn over.
    pub(super) fn new(printer: Printer, may_move: bool, prints_changes: bool) -> Self {
        let line = Some(StatusLine::new(printer)).filter(|line| may_move && line.is_shown());
        let prints_changes = prints_changes && !printer.is_json() && line.is_none();
        Self { printer, line, prints_changes, since: Instant::now(), frame: 0, status_text: "calling".to_owned() }
    }

    /// Takes the status out of an event.
    pub(super) fn update(&mut self, event: &StreamResponse) {
        let status = match event {
            StreamResponse::Task(task) => &task.status,
            StreamResponse::StatusUpdate(update) => &update.status,
            StreamResponse::Message(_) | StreamResponse::ArtifactUpdate(_) => return,
        };
        let text = status_text(status);
        // A terminal or interrupted state is printed with the result.
        let ends = status.state.is_terminal() || status.state.is_interrupted();
        if self.prints_changes && !ends && text != self.status_text {
            self.printer.note(&format!("state: {text}"));
        }
        self.status_text = text;
    }

    pub(super) fn draw(&mut self) {
        let Some(line) = &mut self.line else { return };
        self.frame = (self.frame + 1) % FRAMES.len();
        let elapsed = self.since.elapsed().as_secs_f32();
        line.draw(&format!("{} {} {elapsed:.1}s", FRAMES[self.frame], self.status_text));
    }

    /// Before other output.
    pub(super) fn clear(&mut self) {
        self.line.iter_mut().for_each(StatusLine::clear);
    }
}

fn status_text(status: &TaskStatus) -> String {
    let word = task_output::state(status.state);
    let message = status.message.as_ref().map(|message| sanitize::line(&message.joined_text())).unwrap_or_default();
    if message.is_empty() {
        return word.to_owned();
    }
    let short: String = message.chars().take(LONGEST).collect();
    let dots = if short.len() < message.len() { "…" } else { "" };
    format!("{word} ({short}{dots})")
}
