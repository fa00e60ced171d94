//! How a call is getting on, on standard error: a line that moves on a terminal, a line per change anywhere else.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use switchboard_a2a::{StreamResponse, TaskStatus};
use switchboard_host::printer::{self, Printer};

use crate::commands::calling::{sanitize, shown};

/// How often the line moves.
pub(super) const TICK: Duration = Duration::from_millis(120);

const FRAMES: [char; 4] = ['|', '/', '-', '\\'];
/// The most of what an agent says about its state that is shown on the line.
const LONGEST: usize = 60;

/// Shows how it is getting on.
pub(super) struct Progress {
    printer: Printer,
    is_moving: bool,
    /// Whether each change is a line.
    tells: bool,
    is_drawn: bool,
    since: Instant,
    frame: usize,
    told: String,
}

impl Progress {
    /// Nothing moves where programs read, where much else is written, or on a terminal that cannot go back on a line.
    pub(super) fn new(printer: Printer, may_move: bool, tells: bool) -> Self {
        let is_moving = may_move && !printer.is_json() && std::io::stderr().is_terminal() && !printer::is_dumb();
        let tells = tells && !printer.is_json() && !is_moving;
        let told = "calling".to_owned();
        Self { printer, is_moving, tells, is_drawn: false, since: Instant::now(), frame: 0, told }
    }

    /// Takes in what was heard.
    pub(super) fn hear(&mut self, event: &StreamResponse) {
        let status = match event {
            StreamResponse::Task(task) => &task.status,
            StreamResponse::StatusUpdate(update) => &update.status,
            StreamResponse::Message(_) | StreamResponse::ArtifactUpdate(_) => return,
        };
        let told = told(status);
        // The end is told with the result.
        let ends = status.state.is_terminal() || status.state.is_interrupted();
        if self.tells && !ends && told != self.told {
            self.printer.note(&format!("state: {told}"));
        }
        self.told = told;
    }

    /// Moves the line.
    pub(super) fn draw(&mut self) {
        if !self.is_moving {
            return;
        }
        self.frame = (self.frame + 1) % FRAMES.len();
        self.is_drawn = true;
        let elapsed = self.since.elapsed().as_secs_f32();
        self.printer.draw(&format!("\r\u{1b}[2K{} {} {elapsed:.1}s", FRAMES[self.frame], self.told));
    }

    /// Takes the line away, so that something else can be written.
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

fn told(status: &TaskStatus) -> String {
    let word = shown::state(status.state);
    let said = status.message.as_ref().map(|message| sanitize::line(&message.joined_text())).unwrap_or_default();
    if said.is_empty() {
        return word.to_owned();
    }
    let short: String = said.chars().take(LONGEST).collect();
    let dots = if short.len() < said.len() { "…" } else { "" };
    format!("{word} ({short}{dots})")
}
