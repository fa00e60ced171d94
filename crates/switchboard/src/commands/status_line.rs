//! A line on standard error that says what is being waited for. It is drawn over, and gone with the answer.

use std::io::IsTerminal;

use switchboard_host::printer::{self, Printer};

/// Nothing is shown with JSON output, or where there is no terminal with cursor control.
pub(crate) struct StatusLine(Option<Printer>);

impl StatusLine {
    pub(crate) fn new(printer: Printer) -> Self {
        let is_shown = !printer.is_json() && std::io::stderr().is_terminal() && !printer::is_dumb();
        Self(is_shown.then_some(printer))
    }

    pub(crate) fn draw(&self, text: &str) {
        if let Some(printer) = self.0 {
            printer.draw(&format!("\r\u{1b}[2K{text}"));
        }
    }
}

impl Drop for StatusLine {
    fn drop(&mut self) {
        self.draw("");
    }
}
