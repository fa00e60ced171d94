//! The messages of a program to the caller; the last one becomes the answer of the turn.

use crate::adapters::dialogue::Steps;
use crate::adapters::event::Event;

/// Longer messages are passed on like any other, but not repeated as the answer.
const LONGEST_ANSWER: usize = 1 << 20;

/// The messages of one run.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    /// The last message, or the part of it received so far.
    message: String,
    /// Whether it goes on.
    open: bool,
    too_long: bool,
}

impl Messages {
    /// Passes on a part of a message.
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

    /// Ends the open message, if there is one.
    pub(crate) fn end(&mut self, steps: &mut Steps) {
        if self.open {
            self.open = false;
            steps.event(Event::TextEnd);
        }
    }

    /// The last message.
    pub(crate) fn answer(&self) -> Option<String> {
        let message = self.message.trim_end();
        (!message.is_empty()).then(|| message.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_message_is_the_answer_unless_it_is_very_long() {
        let (mut messages, mut steps) = (Messages::default(), Steps::default());
        assert_eq!(messages.answer(), None);
        messages.push("one".to_owned(), &mut steps);
        messages.end(&mut steps);
        messages.end(&mut steps);
        assert_eq!(messages.answer().as_deref(), Some("one"));
        messages.push("t".to_owned(), &mut steps);
        messages.push("wo\n".to_owned(), &mut steps);
        assert_eq!(messages.answer().as_deref(), Some("two"));
        assert_eq!(steps.take().len(), 4);
        messages.push("x".repeat(LONGEST_ANSWER), &mut steps);
        messages.push("and more".to_owned(), &mut steps);
        assert_eq!(messages.answer(), None);
        messages.end(&mut steps);
        messages.push("three".to_owned(), &mut steps);
        assert_eq!(messages.answer().as_deref(), Some("three"));
    }
}
