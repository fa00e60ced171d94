//! Terminal output, for all commands: text or JSON answers to standard output, errors with their next step to standard
//! error. Colour only for a terminal, and never under `NO_COLOR`.
//!
//! With `-o json` errors are objects on standard output too, so that a program reads one stream.

use std::borrow::Cow;
use std::io::{ErrorKind, IsTerminal, Write};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

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
    pub fn new(output: Output) -> Self {
        Self { output }
    }

    /// Whether the output is JSON.
    pub fn is_json(&self) -> bool {
        self.output == Output::Json
    }

    /// Writes a line of text output.
    pub fn line(&self, text: impl AsRef<str>) {
        answer_line(text.as_ref());
    }

    /// Writes a value as indented JSON.
    pub fn json(&self, value: &impl Serialize) {
        self.json_text(serde_json::to_string_pretty(value), "run it without -o json");
    }

    /// Writes a value as one line of a JSON stream.
    pub fn json_line<T: Serialize + ?Sized>(&self, value: &T) {
        self.json_text(serde_json::to_string(value), "");
    }

    fn json_text(&self, json: serde_json::Result<String>, next_step: &str) {
        match json {
            Ok(text) => answer_line(&escape_terminal_controls(&text)),
            Err(error) => self.error(&format!("the answer cannot be written as JSON: {error}"), next_step),
        }
    }

    /// Writes an answer as it is, and a line break.
    pub fn raw(&self, bytes: &[u8]) {
        answer(&[bytes, b"\n"].concat());
    }

    /// Writes foreign JSON and a line break: unchanged, unless it goes to a terminal.
    pub fn raw_json(&self, json: &[u8]) {
        match std::str::from_utf8(json) {
            Ok(text) if std::io::stdout().is_terminal() => answer_line(&escape_terminal_controls(text)),
            _ => self.raw(json),
        }
    }

    /// Writes a piece of a line of an answer.
    pub fn piece(&self, text: &str) {
        answer(text.as_bytes());
    }

    /// Writes a line that is not part of the answer.
    pub fn note(&self, text: &str) {
        write_line(std::io::stderr().lock(), text);
    }

    /// Writes a piece of a line that is not part of the answer.
    pub fn draw(&self, text: &str) {
        write(std::io::stderr().lock(), text.as_bytes());
    }

    /// Writes a table whose first row says what its columns are.
    pub fn titled_table<const COLUMNS: usize>(
        &self,
        titles: [&str; COLUMNS],
        rows: impl IntoIterator<Item = [String; COLUMNS]>,
    ) {
        let rows: Vec<_> = std::iter::once(titles.map(str::to_owned)).chain(rows).collect();
        self.table(&rows);
    }

    /// Writes a value under its name on each line.
    pub fn fields(&self, fields: impl IntoIterator<Item = (&'static str, String)>) {
        let rows: Vec<_> = fields.into_iter().map(|(name, value)| [name.to_owned(), value]).collect();
        self.table(&rows);
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
    pub fn failure(&self, text: &str, next_step: &str) -> ExitCode {
        self.error(text, next_step);
        ExitCode::FAILURE
    }
}

/// Whether standard error may be coloured. By convention an empty `NO_COLOR` counts as unset.
pub fn colors_on_stderr() -> bool {
    let is_forbidden = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    std::io::stderr().is_terminal() && !is_dumb() && !is_forbidden
}

/// Whether the terminal understands nothing but text.
pub fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|terminal| terminal == "dumb")
}

fn emphasized(word: &str, color: &str) -> String {
    if colors_on_stderr() { format!("\u{1b}[1;{color}m{word}\u{1b}[0m") } else { word.to_owned() }
}

/// Whether a part of the answer could not be written.
static IS_LOST: AtomicBool = AtomicBool::new(false);

/// Whether a part of the answer could not be written; the exit code must say so.
pub fn has_lost_output() -> bool {
    IS_LOST.load(Ordering::Relaxed)
}

/// Whether nobody reads the answer any more.
static IS_CLOSED: AtomicBool = AtomicBool::new(false);

/// Whether nobody reads the answer any more (`| head`); a command without an end of its own ends then.
pub fn is_output_closed() -> bool {
    IS_CLOSED.load(Ordering::Relaxed)
}

/// Records a failed write to standard output and reports the first one. A closed pipe (`| head`) is no failure.
pub fn record_result(result: std::io::Result<()>) {
    let Err(error) = result else { return };
    if error.kind() == ErrorKind::BrokenPipe {
        return IS_CLOSED.store(true, Ordering::Relaxed);
    }
    if !IS_LOST.swap(true, Ordering::Relaxed) {
        write_line(std::io::stderr().lock(), &format!("the output could not be written: {error}"));
    }
}

/// Escapes terminal control characters in JSON. They occur only inside strings, where `\u` escapes mean the same.
fn escape_terminal_controls(json: &str) -> Cow<'_, str> {
    let is_kept = |character: char| matches!(character, '\n' | '\t') || !is_terminal_control(character);
    if json.chars().all(is_kept) {
        return Cow::Borrowed(json);
    }
    let mut escaped = String::with_capacity(json.len());
    for character in json.chars() {
        match character {
            // Outside of strings it is part of a line break.
            '\r' => {}
            kept if is_kept(kept) => escaped.push(kept),
            other => escaped.push_str(&format!("\\u{:04x}", u32::from(other))),
        }
    }
    Cow::Owned(escaped)
}

/// Control characters and bidirectional overrides, which reorder the displayed text.
pub fn is_terminal_control(character: char) -> bool {
    character.is_control() || matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn answer_line(text: &str) {
    answer(format!("{text}\n").as_bytes());
}

fn answer(bytes: &[u8]) {
    let mut stdout = std::io::stdout().lock();
    let result = stdout.write_all(bytes).and_then(|()| stdout.flush());
    drop(stdout);
    record_result(result);
}

fn write_line(target: impl Write, text: &str) {
    write(target, format!("{text}\n").as_bytes());
}

/// A failure to write to standard error cannot be reported.
fn write(mut target: impl Write, bytes: &[u8]) {
    let _ = target.write_all(bytes).and_then(|()| target.flush());
}
