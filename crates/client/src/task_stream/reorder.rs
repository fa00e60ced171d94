//! The reorder buffer: numbered events that arrived before their predecessors. The missing ones are close behind, or
//! lost; then the stream reconnects once to get them, and after that they are a gap.

use std::collections::BTreeMap;

use switchboard_a2a::StreamResponse;

use super::position::{Position, Step};

/// How often the stream reconnects for missing events without any new one in between.
const MAX_REQUESTS: u32 = 3;

/// An event, its position and its id.
pub(super) type NumberedEvent = (Position, StreamResponse, Option<String>);

#[derive(Debug, Default)]
pub(super) struct ReorderBuffer {
    waiting: BTreeMap<Position, (StreamResponse, Option<String>)>,
    asked_about: Option<Position>,
    questions: u32,
}

impl ReorderBuffer {
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(super) fn any(&self, is_it: impl Fn(&StreamResponse) -> bool) -> bool {
        self.waiting.values().any(|(event, _)| is_it(event))
    }

    pub(super) fn keep(&mut self, position: Position, event: StreamResponse, id: Option<String>) {
        self.waiting.entry(position).or_insert((event, id));
    }

    /// The next event if it follows the last emitted one.
    pub(super) fn pop_next(&mut self, last: Option<Position>) -> Option<NumberedEvent> {
        loop {
            let (position, last) = (*self.waiting.first_key_value()?.0, last?);
            match position.step(last) {
                Step::Gap => return None,
                Step::Duplicate => drop(self.waiting.pop_first()),
                Step::Next => return self.first(),
            }
        }
    }

    /// The missing events have not come. Returns the first buffered event if a reconnect has not brought them either:
    /// they are a gap. Otherwise the stream is to reconnect.
    pub(super) fn confirmed_gap(&mut self) -> Option<NumberedEvent> {
        let first = *self.waiting.first_key_value()?.0;
        if self.asked_about == Some(first) || self.questions >= MAX_REQUESTS {
            return self.first();
        }
        self.asked_about = Some(first);
        self.questions += 1;
        None
    }

    /// An event was emitted, so reconnects are counted anew.
    pub(super) fn reset(&mut self) {
        self.questions = 0;
    }

    /// The next connection sends them again.
    pub(super) fn clear(&mut self) {
        self.waiting.clear();
    }

    fn first(&mut self) -> Option<NumberedEvent> {
        self.questions = 0;
        self.waiting.pop_first().map(|(position, (event, id))| (position, event, id))
    }
}
