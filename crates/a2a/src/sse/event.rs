//! One server-sent event, assembled from its lines.

use std::time::Duration;

/// The end marker of some peers, also on a line of its own.
pub(super) const DONE: &str = "[DONE]";

/// One event. [`Event::decode`] says what it means in A2A.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Event {
    /// The `event` field, such as `task/status`; A2A itself names no events.
    pub name: Option<String>,
    /// The `data` lines, joined with line feeds. Empty where the peer only gives an id or a time to wait.
    pub data: String,
    /// To be sent back as `Last-Event-ID` to resume after this event.
    pub id: Option<String>,
    /// The number of the event before this one, where the stream skips internal events; see
    /// [`RESUMPTION`](crate::extension::RESUMPTION).
    pub after: Option<u64>,
    /// How long to wait before a reconnect.
    pub retry: Option<Duration>,
}

/// The event of the lines since the last blank one.
#[derive(Debug, Default)]
pub(super) struct Block {
    event: Event,
    has_data: bool,
}

impl Block {
    /// Takes a line that is neither blank nor a comment. Unknown fields are ignored.
    pub(super) fn line(&mut self, line: &str) {
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => self.data(value),
            "event" => self.event.name = Some(value.to_owned()).filter(|name| !name.is_empty()),
            // A header could not carry it back.
            "id" if !value.contains('\0') => self.event.id = Some(value.to_owned()),
            "after" => self.event.after = value.parse().ok(),
            "retry" if value.bytes().all(|byte| byte.is_ascii_digit()) => {
                self.event.retry = value.parse().ok().map(Duration::from_millis).or(self.event.retry);
            }
            _ if line.trim() == DONE => self.data(DONE),
            _ => {}
        }
    }

    fn data(&mut self, value: &str) {
        if std::mem::replace(&mut self.has_data, true) {
            self.event.data.push('\n');
        }
        self.event.data.push_str(value);
    }

    /// The event, if it has any field. A browser would require data; resumption needs the id and the retry time too.
    pub(super) fn event(self) -> Option<Event> {
        let says_something = self.has_data || self.event.id.is_some() || self.event.retry.is_some();
        says_something.then_some(self.event)
    }
}
