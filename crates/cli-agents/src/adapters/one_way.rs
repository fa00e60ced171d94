//! The dialogue with a program that reads nothing but its prompt, and writes JSON lines until its turn has ended.

use serde_json::Value;

use crate::adapters::dialogue::{Dialogue, Exit, Steps};
use crate::adapters::json_lines::object;

/// What the output of one program means.
pub(crate) trait OutputReader: Send {
    /// One line, a JSON object.
    fn line(&mut self, line: &Value, steps: &mut Steps);

    /// The program has exited without finishing the turn: finishes it.
    fn ended(&mut self, exit: &Exit, interrupted: bool, steps: &mut Steps);
}

/// The turn ends with the first `Finish` of its reader; nothing is read after that.
pub(crate) struct OneWayDialogue<R> {
    /// What is written to the program, if its prompt is no argument.
    prompt: Option<String>,
    reader: R,
    interrupted: bool,
    finished: bool,
}

impl<R: OutputReader> OneWayDialogue<R> {
    pub(crate) fn new(prompt: Option<String>, reader: R) -> Self {
        Self { prompt, reader, interrupted: false, finished: false }
    }
}

impl<R: OutputReader> Dialogue for OneWayDialogue<R> {
    fn begin(&mut self, steps: &mut Steps) {
        if let Some(prompt) = self.prompt.take() {
            steps.write(prompt);
            // Such programs read up to the end of their input before they begin.
            steps.close_input();
        }
    }

    fn line(&mut self, line: &str, steps: &mut Steps) {
        let Some(line) = object(line).filter(|_| !self.finished) else { return };
        self.reader.line(&line, steps);
        self.finished = steps.are_finished();
    }

    /// Its input is closed, so there is nothing to write; signals follow.
    fn interrupt(&mut self, _: &mut Steps) {
        self.interrupted = true;
    }

    fn ended(&mut self, exit: &Exit, steps: &mut Steps) {
        if !self.finished {
            self.finished = true;
            self.reader.ended(exit, self.interrupted, steps);
        }
    }
}
