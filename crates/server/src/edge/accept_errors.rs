//! Failures to accept a connection, most often for lack of file descriptors. They come by the dozen each second while
//! they last, and a full log would be the next thing to run out.

use std::time::{Duration, Instant};

/// One line in this time says enough.
const AT_MOST_EVERY: Duration = Duration::from_secs(1);

/// Decides which failures are worth a line.
#[derive(Default)]
pub(super) struct AcceptErrors {
    said: Option<Instant>,
    unsaid: u64,
}

impl AcceptErrors {
    /// One more failure. If it is to be told: how many before it were not.
    pub(super) fn note(&mut self, now: Instant) -> Option<u64> {
        if self.said.is_some_and(|said| now.saturating_duration_since(said) < AT_MOST_EVERY) {
            self.unsaid += 1;
            return None;
        }
        self.said = Some(now);
        Some(std::mem::take(&mut self.unsaid))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_a_second_says_how_many_there_were() {
        let mut errors = AcceptErrors::default();
        let began = Instant::now();
        let after = |milliseconds: u64| began + Duration::from_millis(milliseconds);
        assert_eq!(errors.note(after(0)), Some(0));
        assert_eq!([50, 500, 999].map(|at| errors.note(after(at))), [None; 3]);
        assert_eq!(errors.note(after(1_000)), Some(3));
        assert_eq!(errors.note(after(1_050)), None);
        assert_eq!(errors.note(after(9_000)), Some(1));
    }
}
