//! The messages of a program to the caller; the last one becomes the answer of the turn.

use crate::adapters::dialogue::Steps;
use crate::adapters::event::Event;

/// Longer messages are passed on like any other, but not kept as the answer: a program that never stops must not fill the
/// memory.
const LONGEST_ANSWER: usize = 1 << 20;

#[derive(Debug, Default)]
pub(crate) struct Messages {
    /// The last message, or the part of it received so far.
    message: String,
    open: bool,
    too_long: bool,
    /// The program's id of the open message, where it gives one.
    id: Option<String>,
}

impl Messages {
    /// Passes on a part of the message with an id. A part of another message ends the one before it.
    pub(crate) fn push_of(&mut self, id: Option<&str>, text: String, steps: &mut Steps) {
        if text.is_empty() {
            return;
        }
        if self.id.as_deref() != id {
            self.end(steps);
            self.id = id.map(str::to_owned);
        }
        self.push(text, steps);
    }

    pub(crate) fn push(&mut self, text: String, steps: &mut Steps) {
        if text.is_empty() {
            return;
        }
        if !self.open {
            self.message.clear();
            (self.open, self.too_long) = (true, false);
        }
        if self.message.len() + text.len() > LONGEST_ANSWER {
            self.too_long = true;
            self.message.clear();
        }
        if !self.too_long {
            self.message.push_str(&text);
        }
        steps.event(Event::Text { text });
    }

    pub(crate) fn end(&mut self, steps: &mut Steps) {
        if self.open {
            self.open = false;
            steps.event(Event::TextEnd);
        }
    }

    /// The last message, unless it is too long.
    pub(crate) fn last(&self) -> Option<String> {
        (!self.message.is_empty()).then(|| self.message.clone())
    }

    /// The last message without the line end of plain text.
    pub(crate) fn answer(&self) -> Option<String> {
        let message = self.message.trim_end();
        (!message.is_empty()).then(|| message.to_owned())
    }
}
