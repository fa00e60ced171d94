//! The sequence number of an event in its task's log, as `epoch.number` in the SSE id. Some numbers are not streamed;
//! the next event's `after` says which, so every other hole is a lost event.

/// A position in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Position {
    epoch: u64,
    number: u64,
    /// The number of the streamed event before it.
    before: u64,
}

/// How an event relates to the last emitted one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Duplicate,
    Next,
    /// Events may be missing in between.
    Gap,
}

impl Position {
    /// Parses an id and the field `after`.
    pub(super) fn parse(id: &str, after: Option<u64>) -> Option<Self> {
        let (epoch, number) = id.split_once('.')?;
        let (epoch, number) = (digits(epoch)?, digits(number)?);
        Some(Self { epoch, number, before: after.unwrap_or(number.saturating_sub(1)) })
    }

    pub(super) fn is_first(self) -> bool {
        self.before == 0
    }

    pub(super) fn step(self, last: Self) -> Step {
        if (self.epoch, self.number) <= (last.epoch, last.number) {
            Step::Duplicate
        } else if self.number > last.number && self.before <= last.number {
            Step::Next
        } else {
            Step::Gap
        }
    }
}

fn digits(text: &str) -> Option<u64> {
    let is_plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_plain { text.parse().ok() } else { None }
}
