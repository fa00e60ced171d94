//! Deduplicates the text of messages.
//!
//! Text comes twice: in deltas and then as a whole message. A message may also come only whole, after the program has
//! fallen back to a request without a stream, and the deltas of a broken stream come again with the retry.

use crate::adapters::dialogue::Steps;
use crate::adapters::event::Event;

/// The longest text that is compared with a second attempt at it.
const LONGEST_COMPARED: usize = 1 << 20;

#[derive(Debug, Default)]
pub(super) struct MessageStream {
    /// The message that was begun last.
    message: String,
    /// Whether its text came in deltas.
    text_in_pieces: bool,
    /// Whether its reasoning came in deltas.
    thoughts_in_pieces: bool,
    /// Text that was emitted and not ended.
    emitted: String,
    /// Whether text was emitted and not ended.
    open: bool,
    /// The text emitted by an attempt that broke off.
    abandoned: Option<String>,
    /// The text of the attempt after that, as long as it only repeats.
    repeated: String,
}

impl MessageStream {
    pub(super) fn begin(&mut self, message: &str, steps: &mut Steps) {
        if self.abandoned.is_none() {
            self.end(steps);
        }
        self.enter(message);
    }

    pub(super) fn text_delta(&mut self, text: &str, steps: &mut Steps) {
        self.text_in_pieces = true;
        self.push(text, steps);
    }

    pub(super) fn reasoning_delta(&mut self, text: &str, steps: &mut Steps) {
        self.thoughts_in_pieces = true;
        emit_reasoning(text, steps);
    }

    pub(super) fn whole_text(&mut self, message: &str, text: &str, steps: &mut Steps) {
        self.turn_to(message, steps);
        if !self.text_in_pieces {
            self.push(text, steps);
        }
    }

    pub(super) fn whole_reasoning(&mut self, message: &str, text: &str, steps: &mut Steps) {
        self.turn_to(message, steps);
        if !self.thoughts_in_pieces {
            emit_reasoning(text, steps);
        }
    }

    /// The message broke off; another attempt at it follows.
    pub(super) fn abandon(&mut self) {
        self.repeated.clear();
        if self.abandoned.is_none() && !self.emitted.is_empty() && self.emitted.len() < LONGEST_COMPARED {
            self.abandoned = Some(std::mem::take(&mut self.emitted));
        }
    }

    pub(super) fn end(&mut self, steps: &mut Steps) {
        let repeated = std::mem::take(&mut self.repeated);
        if let Some(abandoned) = self.abandoned.take()
            && !repeated.is_empty()
            && repeated != abandoned
        {
            // The second attempt is only the beginning of the first.
            self.close(steps);
            self.emit(&repeated, steps);
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

    fn push(&mut self, text: &str, steps: &mut Steps) {
        let Some(abandoned) = self.abandoned.take() else {
            self.emit(text, steps);
            return;
        };
        self.repeated.push_str(text);
        if abandoned.starts_with(&self.repeated) {
            self.abandoned = Some(abandoned);
            return;
        }
        let repeated = std::mem::take(&mut self.repeated);
        if let Some(rest) = repeated.strip_prefix(&abandoned) {
            self.emitted = abandoned;
            self.emit(rest, steps);
        } else {
            self.close(steps);
            self.emit(&repeated, steps);
        }
    }

    fn emit(&mut self, text: &str, steps: &mut Steps) {
        if text.is_empty() {
            return;
        }
        self.open = true;
        if self.emitted.len() < LONGEST_COMPARED {
            self.emitted.push_str(text);
        }
        steps.event(Event::Text { text: text.to_owned() });
    }

    fn close(&mut self, steps: &mut Steps) {
        self.emitted.clear();
        if std::mem::take(&mut self.open) {
            steps.event(Event::TextEnd);
        }
    }
}

fn emit_reasoning(text: &str, steps: &mut Steps) {
    if !text.is_empty() {
        steps.event(Event::Reasoning { text: text.to_owned() });
    }
}
