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

/// The lines since the last blank one.
#[derive(Debug, Default)]
pub(super) struct Block {
    name: Option<String>,
    data: Option<String>,
    id: Option<String>,
    after: Option<u64>,
    retry: Option<Duration>,
}

impl Block {
    /// Takes a line that is neither blank nor a comment. Unknown fields are ignored.
    pub(super) fn line(&mut self, line: &str) {
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => self.data(value),
            "event" => self.name = Some(value.to_owned()).filter(|name| !name.is_empty()),
            // A header could not carry it back.
            "id" if !value.contains('\0') => self.id = Some(value.to_owned()),
            "after" => self.after = value.parse().ok(),
            "retry" if value.bytes().all(|byte| byte.is_ascii_digit()) => {
                self.retry = value.parse().ok().map(Duration::from_millis).or(self.retry);
            }
            _ if line.trim() == DONE => self.data(DONE),
            _ => {}
        }
    }

    fn data(&mut self, value: &str) {
        match &mut self.data {
            None => self.data = Some(value.to_owned()),
            Some(data) => {
                data.push('\n');
                data.push_str(value);
            }
        }
    }

    /// The event, if it has any field. A browser would require data; resumption needs the id and the retry time too.
    pub(super) fn event(self) -> Option<Event> {
        let says_something = self.data.is_some() || self.id.is_some() || self.retry.is_some();
        says_something.then(|| Event {
            name: self.name,
            data: self.data.unwrap_or_default(),
            id: self.id,
            after: self.after,
            retry: self.retry,
        })
    }
}
