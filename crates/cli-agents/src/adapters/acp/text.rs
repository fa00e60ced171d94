//! Messages of an agent, assembled from chunks.

use crate::adapters::dialogue::Steps;
use crate::adapters::event::Event;

/// A longer last message is not repeated at the end, so that an agent that never stops cannot fill the memory.
const LONGEST_ANSWER: usize = 1 << 20;

/// The messages of one turn.
#[derive(Default)]
pub(super) struct Text {
    /// Whether a message is open.
    open: bool,
    /// The agent's id of it, where it gives one.
    id: Option<String>,
    /// The last message, unless it is too long.
    last: Option<String>,
}

impl Text {
    /// Passes on a chunk. A chunk of another message ends the one before it.
    pub(super) fn piece(&mut self, text: &str, id: Option<&str>, steps: &mut Steps) {
        if text.is_empty() {
            return;
        }
        if self.id.as_deref() != id {
            self.end(steps);
        }
        if !self.open {
            self.open = true;
            self.id = id.map(str::to_owned);
            self.last = Some(String::new());
        }
        if let Some(last) = &mut self.last {
            last.push_str(text);
        }
        self.last.take_if(|last| last.len() > LONGEST_ANSWER);
        steps.event(Event::Text { text: text.to_owned() });
    }

    /// The agent has gone on to something else.
    pub(super) fn end(&mut self, steps: &mut Steps) {
        if std::mem::take(&mut self.open) {
            steps.event(Event::TextEnd);
        }
    }

    /// The last message.
    pub(super) fn answer(&self) -> Option<String> {
        self.last.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapters::dialogue::Step;

    #[test]
    fn pieces_of_another_message_begin_a_new_one() {
        let (mut text, mut steps) = (Text::default(), Steps::default());
        text.piece("a", Some("1"), &mut steps);
        text.piece("", Some("2"), &mut steps);
        text.piece("b", Some("1"), &mut steps);
        text.piece("c", Some("2"), &mut steps);
        text.end(&mut steps);
        text.end(&mut steps);
        let said = |text: &str| Step::Event(Event::Text { text: text.to_owned() });
        let end = || Step::Event(Event::TextEnd);
        assert_eq!(steps.take(), [said("a"), said("b"), end(), said("c"), end()]);
        assert_eq!(text.answer().as_deref(), Some("c"));
    }

    #[test]
    fn an_endless_message_is_told_but_not_kept() {
        let (mut text, mut steps) = (Text::default(), Steps::default());
        let piece = "x".repeat(LONGEST_ANSWER);
        text.piece(&piece, None, &mut steps);
        assert_eq!(text.answer().map(|answer| answer.len()), Some(LONGEST_ANSWER));
        text.piece("y", None, &mut steps);
        text.piece("z", None, &mut steps);
        assert_eq!(text.answer(), None);
        assert_eq!(steps.take().len(), 3);
    }
}
