//! The sequence number of an event in its task's log, as `epoch.number` in the SSE id. Some numbers are not streamed;
//! the next event's `after` says which, so every other hole is a lost event.

use std::cmp::Ordering;

/// A position in the log. `before` does not count for equality.
#[derive(Clone, Copy, Debug)]
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
        if self <= last {
            Step::Duplicate
        } else if self.number > last.number && self.before <= last.number {
            Step::Next
        } else {
            Step::Gap
        }
    }
}

impl Ord for Position {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.epoch, self.number).cmp(&(other.epoch, other.number))
    }
}

impl PartialOrd for Position {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Position {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Position {}

fn digits(text: &str) -> Option<u64> {
    let is_plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_plain { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps() {
        let at = |id: &str| Position::parse(id, None).unwrap();
        let after = |id: &str, before| Position::parse(id, Some(before)).unwrap();
        assert_eq!(at("1.5").step(at("1.4")), Step::Next);
        assert_eq!(at("2.5").step(at("1.4")), Step::Next, "a restart that lost nothing");
        assert_eq!(at("1.4").step(at("1.4")), Step::Duplicate);
        assert_eq!(at("1.3").step(at("1.4")), Step::Duplicate);
        assert_eq!(at("1.6").step(at("1.4")), Step::Gap);
        assert_eq!(at("2.3").step(at("1.4")), Step::Gap, "a restart that lost something");
        assert_eq!(after("1.7", 4).step(at("1.4")), Step::Next, "5 and 6 are told nobody");
        assert_eq!(after("2.7", 4).step(at("1.4")), Step::Next);
        assert_eq!(after("1.7", 3).step(at("1.4")), Step::Next, "a picture of the task may be of what is told nobody");
        assert_eq!(after("1.7", 5).step(at("1.4")), Step::Gap, "5 was lost");
        assert_eq!(after("1.4", 2).step(at("1.4")), Step::Duplicate);
        assert_eq!(after("2.4", 2).step(at("1.4")), Step::Gap);
        for odd in ["", "7", "a.b", "1.", ".1", "1.-2", "1.2.3", "99999999999999999999.1"] {
            assert_eq!(Position::parse(odd, None), None, "{odd:?}");
        }
    }
}
