//! How many programs are still being waited for, on a terminal: some take seconds to start.

use std::io::IsTerminal;

use switchboard_host::printer::{self, Printer};

pub(super) struct Progress {
    printer: Printer,
    left: usize,
    is_shown: bool,
}

impl Progress {
    pub(super) fn new(printer: Printer, left: usize) -> Self {
        let is_shown = !printer.is_json() && std::io::stderr().is_terminal() && !printer::is_dumb();
        let progress = Self { printer, left, is_shown };
        progress.draw();
        progress
    }

    pub(super) fn one_less(&mut self) {
        self.left = self.left.saturating_sub(1);
        self.draw();
    }

    fn draw(&self) {
        if self.is_shown {
            self.printer.draw(&format!("\r\u{1b}[2Klooking at programs and agents, {} left", self.left));
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.is_shown {
            self.printer.draw("\r\u{1b}[2K");
        }
    }
}
