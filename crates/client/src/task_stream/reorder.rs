//! The reorder buffer: numbered events that arrived before their predecessors. The missing ones are close behind, or
//! lost; then the stream reconnects once to get them, and after that they are a gap.

use std::collections::BTreeMap;

use switchboard_a2a::StreamResponse;

use super::position::{Position, Step};

/// How often the stream reconnects for missing events without any new one in between.
const MAX_REQUESTS: u32 = 3;

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
    pub(super) fn pop_next(&mut self, last: Option<Position>) -> Option<(Position, StreamResponse, Option<String>)> {
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
    pub(super) fn confirmed_gap(&mut self) -> Option<(Position, StreamResponse, Option<String>)> {
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

    fn first(&mut self) -> Option<(Position, StreamResponse, Option<String>)> {
        self.questions = 0;
        self.waiting.pop_first().map(|(position, (event, id))| (position, event, id))
    }
}

#[cfg(test)]
mod tests {
    use switchboard_a2a::{Message, Role};

    use super::*;

    fn at(id: &str) -> Position {
        Position::parse(id, None).unwrap()
    }

    fn keep(reorder: &mut ReorderBuffer, id: &str) {
        reorder.keep(at(id), StreamResponse::Message(Message::text(Role::Agent, id)), Some(id.to_owned()));
    }

    fn id(event: Option<(Position, StreamResponse, Option<String>)>) -> Option<String> {
        event.and_then(|(_, _, id)| id)
    }

    fn some(id: &str) -> Option<String> {
        Some(id.to_owned())
    }

    #[test]
    fn what_was_overtaken_lets_the_others_pass_in_order() {
        let mut reorder = ReorderBuffer::default();
        for id in ["1.7", "1.5", "1.6", "1.5"] {
            keep(&mut reorder, id);
        }
        assert_eq!(id(reorder.pop_next(Some(at("1.3")))), None);
        assert_eq!(id(reorder.pop_next(Some(at("1.4")))), some("1.5"));
        assert_eq!(id(reorder.pop_next(Some(at("1.6")))), some("1.7"), "what was told meanwhile is left out");
        assert!(reorder.is_empty());
    }

    #[test]
    fn a_hole_is_believed_when_it_is_there_again() {
        let mut reorder = ReorderBuffer::default();
        keep(&mut reorder, "1.5");
        assert_eq!(id(reorder.confirmed_gap()), None);
        reorder.clear();
        keep(&mut reorder, "1.5");
        assert_eq!(id(reorder.confirmed_gap()), some("1.5"));
    }

    #[test]
    fn an_agent_with_another_hole_every_time_is_not_asked_for_ever() {
        let mut reorder = ReorderBuffer::default();
        for id in ["1.5", "1.6", "1.7"] {
            keep(&mut reorder, id);
            assert!(reorder.confirmed_gap().is_none(), "{id}");
            reorder.clear();
        }
        keep(&mut reorder, "1.8");
        assert_eq!(id(reorder.confirmed_gap()), some("1.8"));
    }
}
