//! What a program has said to the caller, so that its last message can be its answer.

use crate::adapters::dialogue::Steps;
use crate::adapters::event::Event;

/// Longer messages are told like any other, but not repeated as the answer.
const LONGEST_ANSWER: usize = 1 << 20;

/// The messages of one run.
#[derive(Debug, Default)]
pub(crate) struct Said {
    /// The last message, or the part of it that was said so far.
    message: String,
    /// Whether it goes on.
    open: bool,
    too_long: bool,
}

impl Said {
    /// Tells a piece of a message.
    pub(crate) fn say(&mut self, text: String, steps: &mut Steps) {
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

    /// Tells that the message is whole, if there is one.
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
        let (mut said, mut steps) = (Said::default(), Steps::default());
        assert_eq!(said.answer(), None);
        said.say("one".to_owned(), &mut steps);
        said.end(&mut steps);
        said.end(&mut steps);
        assert_eq!(said.answer().as_deref(), Some("one"));
        said.say("t".to_owned(), &mut steps);
        said.say("wo\n".to_owned(), &mut steps);
        assert_eq!(said.answer().as_deref(), Some("two"));
        assert_eq!(steps.take().len(), 4);
        said.say("x".repeat(LONGEST_ANSWER), &mut steps);
        said.say("and more".to_owned(), &mut steps);
        assert_eq!(said.answer(), None);
        said.end(&mut steps);
        said.say("three".to_owned(), &mut steps);
        assert_eq!(said.answer().as_deref(), Some("three"));
    }
}
