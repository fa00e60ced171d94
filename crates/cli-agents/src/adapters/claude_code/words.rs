//! What is said, told once.
//!
//! Text comes twice: in pieces and then as a whole message. A message may also come only whole, after the program has
//! fallen back to asking without a stream, and the pieces of a stream that broke come again when it is asked anew.

use crate::adapters::dialogue::Steps;
use crate::adapters::event::Event;

/// The longest text that is compared with a second attempt at it.
const LONGEST_COMPARED: usize = 1 << 20;

/// What was said in the message at hand.
#[derive(Debug, Default)]
pub(super) struct Words {
    /// The message that was begun last.
    message: String,
    /// Whether text of it came in pieces.
    text_in_pieces: bool,
    /// Whether thoughts of it came in pieces.
    thoughts_in_pieces: bool,
    /// What was told and not ended.
    told: String,
    /// Whether something was told and not ended.
    open: bool,
    /// What was told of an attempt that broke off.
    given_up: Option<String>,
    /// What the attempt after that has said, as long as it only repeats.
    repeated: String,
}

impl Words {
    /// A message begins that comes in pieces.
    pub(super) fn begin(&mut self, message: &str, steps: &mut Steps) {
        if self.given_up.is_none() {
            self.end(steps);
        }
        self.enter(message);
    }

    /// A piece of text.
    pub(super) fn piece(&mut self, text: &str, steps: &mut Steps) {
        self.text_in_pieces = true;
        self.say(text, steps);
    }

    /// A piece of thought.
    pub(super) fn thought(&mut self, text: &str, steps: &mut Steps) {
        self.thoughts_in_pieces = true;
        think(text, steps);
    }

    /// A whole text.
    pub(super) fn whole(&mut self, message: &str, text: &str, steps: &mut Steps) {
        self.turn_to(message, steps);
        if !self.text_in_pieces {
            self.say(text, steps);
        }
    }

    /// A whole thought.
    pub(super) fn whole_thought(&mut self, message: &str, text: &str, steps: &mut Steps) {
        self.turn_to(message, steps);
        if !self.thoughts_in_pieces {
            think(text, steps);
        }
    }

    /// The message broke off; another attempt at it follows.
    pub(super) fn give_up(&mut self) {
        self.repeated.clear();
        if self.given_up.is_none() && !self.told.is_empty() && self.told.len() < LONGEST_COMPARED {
            self.given_up = Some(std::mem::take(&mut self.told));
        }
    }

    /// What was said is a whole message.
    pub(super) fn end(&mut self, steps: &mut Steps) {
        let repeated = std::mem::take(&mut self.repeated);
        if let Some(given_up) = self.given_up.take()
            && !repeated.is_empty()
            && repeated != given_up
        {
            // The second attempt is only the beginning of the first.
            self.close(steps);
            self.tell(&repeated, steps);
        }
        self.close(steps);
    }

    fn turn_to(&mut self, message: &str, steps: &mut Steps) {
        if self.message != message {
            self.begin(message, steps);
        }
    }

    fn enter(&mut self, message: &str) {
        message.clone_into(&mut self.message);
        self.text_in_pieces = false;
        self.thoughts_in_pieces = false;
    }

    fn say(&mut self, text: &str, steps: &mut Steps) {
        let Some(given_up) = self.given_up.take() else {
            self.tell(text, steps);
            return;
        };
        self.repeated.push_str(text);
        if given_up.starts_with(&self.repeated) {
            self.given_up = Some(given_up);
            return;
        }
        let said = std::mem::take(&mut self.repeated);
        if let Some(rest) = said.strip_prefix(&given_up) {
            self.told = given_up;
            self.tell(rest, steps);
        } else {
            self.close(steps);
            self.tell(&said, steps);
        }
    }

    fn tell(&mut self, text: &str, steps: &mut Steps) {
        if text.is_empty() {
            return;
        }
        self.open = true;
        if self.told.len() < LONGEST_COMPARED {
            self.told.push_str(text);
        }
        steps.event(Event::Text { text: text.to_owned() });
    }

    fn close(&mut self, steps: &mut Steps) {
        self.told.clear();
        if std::mem::take(&mut self.open) {
            steps.event(Event::TextEnd);
        }
    }
}

fn think(text: &str, steps: &mut Steps) {
    if !text.is_empty() {
        steps.event(Event::Reasoning { text: text.to_owned() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapters::dialogue::Step;

    /// What is told if these attempts, each given up but the last, are said in pieces.
    fn told(attempts: &[&[&str]]) -> String {
        let (mut words, mut steps) = (Words::default(), Steps::default());
        for (number, attempt) in attempts.iter().enumerate() {
            words.begin(&number.to_string(), &mut steps);
            for piece in *attempt {
                words.piece(piece, &mut steps);
            }
            if number + 1 < attempts.len() {
                words.give_up();
            }
        }
        words.end(&mut steps);
        let told = |step| match step {
            Step::Event(Event::Text { text }) => text,
            Step::Event(Event::TextEnd) => "|".to_owned(),
            other => panic!("{other:?}"),
        };
        steps.take().into_iter().map(told).collect()
    }

    #[test]
    fn an_attempt_that_repeats_a_broken_one_adds_only_what_is_new() {
        assert_eq!(told(&[&["Half a "], &["Ha", "lf a sen", "tence"]]), "Half a sentence|");
        assert_eq!(told(&[&["Half"], &["Half"], &["Half ", "a"]]), "Half a|");
        assert_eq!(told(&[&["Half"], &["Half a"], &["Half a sentence"]]), "Half a sentence|");
        assert_eq!(told(&[&["Half"], &["Half"]]), "Half|");
        assert_eq!(told(&[&["Half"], &[]]), "Half|");
    }

    #[test]
    fn an_attempt_that_says_something_else_is_another_message() {
        assert_eq!(told(&[&["Half a "], &["Ha", "ppy"]]), "Half a |Happy|");
        assert_eq!(told(&[&["Half a "], &["Half"]]), "Half a |Half|");
        assert_eq!(told(&[&[], &["Whole"]]), "Whole|");
    }
}
