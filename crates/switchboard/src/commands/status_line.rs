//! A line on standard error that says what is being waited for. It is drawn over, and gone with the answer.

use std::io::IsTerminal;

use switchboard_host::printer::{self, Printer};

pub(crate) struct StatusLine {
    printer: Printer,
    /// Not with JSON output, or where there is no terminal with cursor control.
    is_shown: bool,
    is_drawn: bool,
}

impl StatusLine {
    pub(crate) fn new(printer: Printer) -> Self {
        let is_shown = !printer.is_json() && std::io::stderr().is_terminal() && !printer::is_dumb();
        Self { printer, is_shown, is_drawn: false }
    }

    pub(crate) fn is_shown(&self) -> bool {
        self.is_shown
    }

    pub(crate) fn draw(&mut self, text: &str) {
        if self.is_shown {
            self.is_drawn = true;
            self.printer.draw(&format!("\r\u{1b}[2K{text}"));
        }
    }

    pub(crate) fn clear(&mut self) {
        if std::mem::take(&mut self.is_drawn) {
            self.printer.draw("\r\u{1b}[2K");
        }
    }
}

impl Drop for StatusLine {
    fn drop(&mut self) {
        self.clear();
    }
}
