//! The only place that writes to the terminal: text for people or JSON for programs, answers to standard output,
//! errors with their next step to standard error. Colour only for a terminal, and never under `NO_COLOR`.

use std::ffi::OsStr;
use std::io::{ErrorKind, IsTerminal, Write};
use std::process::ExitCode;

use serde::Serialize;

/// The form of a command's answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Output {
    /// For people.
    #[default]
    Text,
    /// For programs.
    Json,
}

/// Writes answers and errors.
#[derive(Debug, Clone, Copy)]
pub struct Printer {
    output: Output,
}

impl Printer {
    /// A printer for the chosen form.
    #[must_use]
    pub fn new(output: Output) -> Self {
        Self { output }
    }

    /// Whether programs read the answer.
    #[must_use]
    pub fn is_json(&self) -> bool {
        self.output == Output::Json
    }

    /// Writes a line of an answer for people.
    pub fn line(&self, text: impl AsRef<str>) {
        write_line(std::io::stdout().lock(), text.as_ref());
    }

    /// Writes an answer for programs.
    pub fn json(&self, value: &impl Serialize) {
        match serde_json::to_string_pretty(value) {
            Ok(text) => write_line(std::io::stdout().lock(), &text),
            Err(error) => {
                self.error(&format!("the answer cannot be written as JSON: {error}"), "run it without -o json")
            }
        }
    }

    /// Writes an answer for programs on one line, as part of a stream of lines.
    pub fn json_line<T: Serialize + ?Sized>(&self, value: &T) {
        match serde_json::to_string(value) {
            Ok(text) => write_line(std::io::stdout().lock(), &text),
            Err(error) => self.error(&format!("the answer cannot be written as JSON: {error}"), ""),
        }
    }

    /// Writes an answer as it is, and a line break.
    pub fn raw(&self, bytes: &[u8]) {
        let line = [bytes, b"\n"].concat();
        write(std::io::stdout().lock(), &line);
    }

    /// Writes a piece of a line of an answer.
    pub fn piece(&self, text: &str) {
        write(std::io::stdout().lock(), text.as_bytes());
    }

    /// Writes a line that is not part of the answer.
    pub fn note(&self, text: &str) {
        write_line(std::io::stderr().lock(), text);
    }

    /// Writes a piece of a line that is not part of the answer.
    pub fn draw(&self, text: &str) {
        write(std::io::stderr().lock(), text.as_bytes());
    }

    /// Writes rows under each other, every column as wide as its widest cell.
    pub fn table<const COLUMNS: usize>(&self, rows: &[[String; COLUMNS]]) {
        let mut widths = [0; COLUMNS];
        for row in rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = cell.chars().count().max(*width);
            }
        }
        for row in rows {
            let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
            self.line(cells.collect::<Vec<_>>().join("  ").trim_end());
        }
    }

    /// Writes what is not wrong but probably not meant.
    pub fn warning(&self, text: &str) {
        write_line(std::io::stderr().lock(), &format!("{} {text}", emphasized("warning:", "33")));
    }

    /// Writes what went wrong and what to do next.
    pub fn error(&self, text: &str, next_step: &str) {
        let mut stderr = std::io::stderr().lock();
        write_line(&mut stderr, &format!("{} {text}", emphasized("error:", "31")));
        if !next_step.is_empty() {
            write_line(&mut stderr, &format!("{} {next_step}", emphasized("next:", "36")));
        }
    }

    /// Writes an error and turns it into the exit code of a failure.
    #[must_use]
    pub fn failure(&self, text: &str, next_step: &str) -> ExitCode {
        self.error(text, next_step);
        ExitCode::FAILURE
    }
}

/// Whether standard error may be coloured.
pub(crate) fn colors_on_stderr() -> bool {
    colors(std::env::var_os("NO_COLOR").as_deref(), std::io::stderr().is_terminal() && !is_dumb())
}

/// Whether the terminal understands nothing but text.
pub(crate) fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|terminal| terminal == "dumb")
}

/// An empty `NO_COLOR` forbids nothing; that is how its convention has it.
fn colors(no_color: Option<&OsStr>, terminal: bool) -> bool {
    terminal && no_color.is_none_or(OsStr::is_empty)
}

fn emphasized(word: &str, color: &str) -> String {
    if colors_on_stderr() { format!("\u{1b}[1;{color}m{word}\u{1b}[0m") } else { word.to_owned() }
}

/// A reader that has seen enough (`| head`) is no failure; any other loss of the answer is told where it can be.
fn write_line(target: impl Write, text: &str) {
    write(target, format!("{text}\n").as_bytes());
}

fn write(mut target: impl Write, bytes: &[u8]) {
    let written = target.write_all(bytes).and_then(|()| target.flush());
    if let Err(error) = written
        && error.kind() != ErrorKind::BrokenPipe
    {
        // If standard error is gone as well there is nobody left to tell.
        let _ = writeln!(std::io::stderr(), "the output could not be written: {error}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colour_is_for_terminals_and_not_under_no_color() {
        assert!(colors(None, true));
        assert!(colors(Some(OsStr::new("")), true));
        assert!(!colors(Some(OsStr::new("1")), true));
        assert!(!colors(None, false));
    }
}
