//! Reads the counts out of what test runners print: cargo's own and nextest.

use crate::steps::Counts;

#[derive(Default)]
pub(crate) struct Outcome {
    counts: Counts,
}

impl Outcome {
    /// Takes one line of output; lines that are no result change nothing.
    pub(crate) fn read(&mut self, line: &str) {
        let line = line.trim();
        if let Some(result) = line.strip_prefix("test result:") {
            let numbers = result.split_once('.').map_or("", |(_, numbers)| numbers);
            self.counts.add(parse(numbers.split(';')));
        } else if line.starts_with("Summary [") {
            let numbers = line.split_once(" run: ").map_or("", |(_, numbers)| numbers);
            self.counts.add(parse(numbers.split(',')));
        }
    }

    /// A command that failed without a failed test (it did not compile, say) is one failure.
    pub(crate) fn counts(self, succeeded: bool) -> Counts {
        let mut counts = self.counts;
        if !succeeded && counts.failed == 0 {
            counts.failed = 1;
        }
        counts
    }
}

/// `12 passed`, `1 failed`, `1 timed out`, `2 skipped` and the like.
fn parse<'a>(parts: impl Iterator<Item = &'a str>) -> Counts {
    let mut counts = Counts::default();
    for part in parts {
        let Some((number, word)) = part.trim().split_once(' ') else {
            continue;
        };
        let Ok(number) = number.parse::<u64>() else { continue };
        if word.starts_with("passed") {
            counts.passed += number;
        } else if word.starts_with("failed") || word.starts_with("timed out") || word.starts_with("exec failed") {
            counts.failed += number;
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(lines: &[&str], succeeded: bool) -> Counts {
        let mut outcome = Outcome::default();
        for line in lines {
            outcome.read(line);
        }
        outcome.counts(succeeded)
    }

    #[test]
    fn results_of_several_test_binaries_add_up() {
        let lines = [
            "test result: ok. 12 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s",
            "test unrelated ... ok",
            "test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s",
        ];
        assert_eq!(read(&lines, false), Counts { passed: 15, failed: 2 });
    }

    #[test]
    fn nextest_names_its_kinds_of_failure() {
        let lines = ["     Summary [   0.012s] 9 tests run: 6 passed (1 slow), 2 failed, 1 timed out, 4 skipped"];
        assert_eq!(read(&lines, false), Counts { passed: 6, failed: 3 });
        let lines = ["     Summary [   0.012s] 1 test run: 1 passed, 0 skipped"];
        assert_eq!(read(&lines, true), Counts { passed: 1, failed: 0 });
    }

    #[test]
    fn a_command_that_did_not_get_to_its_tests_is_a_failure() {
        assert_eq!(read(&["error: could not compile"], false), Counts { passed: 0, failed: 1 });
        assert_eq!(read(&[], true), Counts { passed: 0, failed: 0 });
    }
}
