//! Progress of a call on standard error: a spinner on a terminal, one line per status change anywhere else.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use switchboard_a2a::{StreamResponse, TaskStatus};
use switchboard_host::printer::{self, Printer};

use crate::commands::calling::{sanitize, task_output};

/// How often the spinner is redrawn.
pub(super) const TICK: Duration = Duration::from_millis(120);

const FRAMES: [char; 4] = ['|', '/', '-', '\\'];
/// The most characters of a status message on the line.
const LONGEST: usize = 60;

pub(super) struct Progress {
    printer: Printer,
    is_moving: bool,
    /// Whether each change is a line.
    prints_changes: bool,
    is_drawn: bool,
    since: Instant,
    frame: usize,
    status_text: String,
}

impl Progress {
    /// No spinner with JSON output, with `--debug`, or on a terminal without cursor control.
    pub(super) fn new(printer: Printer, may_move: bool, prints_changes: bool) -> Self {
        let is_moving = may_move && !printer.is_json() && std::io::stderr().is_terminal() && !printer::is_dumb();
        let prints_changes = prints_changes && !printer.is_json() && !is_moving;
        let status_text = "calling".to_owned();
        Self { printer, is_moving, prints_changes, is_drawn: false, since: Instant::now(), frame: 0, status_text }
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
        if !self.is_moving {
            return;
        }
        self.frame = (self.frame + 1) % FRAMES.len();
        self.is_drawn = true;
        let elapsed = self.since.elapsed().as_secs_f32();
        self.printer.draw(&format!("\r\u{1b}[2K{} {} {elapsed:.1}s", FRAMES[self.frame], self.status_text));
    }

    /// Erases the line before other output.
    pub(super) fn clear(&mut self) {
        if self.is_drawn {
            self.is_drawn = false;
            self.printer.draw("\r\u{1b}[2K");
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
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
