//! Where in a task's log an event stands, for agents that say so: `epoch.number`, the numbers without holes but for what
//! the caller itself has said and what the agent keeps to itself.

/// A place in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Position {
    epoch: u64,
    number: u64,
}

/// How an event stands to the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// It was there before.
    Again,
    /// It is the next one.
    Next,
    /// Others may be missing in between.
    Jump,
}

impl Position {
    pub(super) fn parse(id: &str) -> Option<Self> {
        let (epoch, number) = id.split_once('.')?;
        Some(Self { epoch: digits(epoch)?, number: digits(number)? })
    }

    pub(super) fn step(self, last: Self) -> Step {
        if self <= last {
            Step::Again
        } else if self.number == last.number.wrapping_add(1) {
            Step::Next
        } else {
            Step::Jump
        }
    }
}

fn digits(text: &str) -> Option<u64> {
    let is_plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_plain { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps() {
        let at = |id: &str| Position::parse(id).unwrap();
        assert_eq!(at("1.5").step(at("1.4")), Step::Next);
        assert_eq!(at("2.5").step(at("1.4")), Step::Next, "a restart that lost nothing");
        assert_eq!(at("1.4").step(at("1.4")), Step::Again);
        assert_eq!(at("1.3").step(at("1.4")), Step::Again);
        assert_eq!(at("1.6").step(at("1.4")), Step::Jump);
        assert_eq!(at("2.3").step(at("1.4")), Step::Jump, "a restart that lost something");
        for odd in ["", "7", "a.b", "1.", ".1", "1.-2", "1.2.3", "99999999999999999999.1"] {
            assert_eq!(Position::parse(odd), None, "{odd:?}");
        }
    }
}
