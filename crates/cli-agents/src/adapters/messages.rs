//! The messages of a program to the caller; the last one becomes the answer of the turn.

use crate::adapters::dialogue::Steps;
use crate::adapters::event::Event;

/// Longer messages are passed on like any other, but not kept as the answer: a program that never stops must not fill the
/// memory.
const LONGEST_ANSWER: usize = 1 << 20;

/// The messages of one run.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    /// The last message, or the part of it received so far.
    message: String,
    /// Whether it goes on.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapters::dialogue::Step;

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

    #[test]
    fn parts_of_another_message_begin_a_new_one() {
        let (mut messages, mut steps) = (Messages::default(), Steps::default());
        for (text, id) in [("a", "1"), ("", "2"), ("b", "1"), ("c", "2")] {
            messages.push_of(Some(id), text.to_owned(), &mut steps);
        }
        messages.end(&mut steps);
        messages.end(&mut steps);
        let text = |text: &str| Step::Event(Event::Text { text: text.to_owned() });
        let end = || Step::Event(Event::TextEnd);
        assert_eq!(steps.take(), [text("a"), text("b"), end(), text("c"), end()]);
        assert_eq!(messages.last().as_deref(), Some("c"));
    }

    #[test]
    fn an_endless_message_is_passed_on_but_not_kept() {
        let (mut messages, mut steps) = (Messages::default(), Steps::default());
        messages.push("x".repeat(LONGEST_ANSWER), &mut steps);
        assert_eq!(messages.last().map(|answer| answer.len()), Some(LONGEST_ANSWER));
        messages.push("y".to_owned(), &mut steps);
        messages.push("z".to_owned(), &mut steps);
        assert_eq!(messages.last(), None);
        assert_eq!(steps.take().len(), 3);
    }
}
