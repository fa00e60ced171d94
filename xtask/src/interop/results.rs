//! Reads what the test programs print: `ok NAME`, and `not ok NAME: why`.

use crate::interop::Names;
use crate::steps::Counts;

#[derive(Default)]
pub(crate) struct Results {
    names: Names,
    counts: Counts,
}

impl Results {
    /// Takes one line of output; lines that are no result change nothing.
    pub(crate) fn read(&mut self, line: &str) {
        if let Some(name) = line.strip_prefix("ok ") {
            self.names.insert(name.to_owned());
            self.counts.passed += 1;
        } else if let Some(failure) = line.strip_prefix("not ok ") {
            let name = failure.split(':').next().unwrap_or(failure);
            self.names.insert(name.to_owned());
            self.counts.failed += 1;
        }
    }

    /// A program that failed without a failed test (it did not get that far, say) is one failure.
    pub(crate) fn end(&mut self, succeeded: bool) {
        if !succeeded && self.counts.failed == 0 {
            self.counts.failed = 1;
        }
    }

    pub(crate) fn counts(&self) -> Counts {
        self.counts
    }

    /// Of the tests that ran, however they ended.
    pub(crate) fn names(&self) -> &Names {
        &self.names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_result_counts_and_names_its_test() {
        let mut results = Results::default();
        for line in [
            "ok jsonrpc-card",
            "Traceback (most recent call last):",
            "not ok rest-card: A2AError: HTTP Error 500: ok",
            "  ok indented is something a test said",
        ] {
            results.read(line);
        }
        results.end(false);
        assert_eq!(results.counts(), Counts { passed: 1, failed: 1 });
        assert_eq!(results.names(), &Names::from(["jsonrpc-card", "rest-card"].map(str::to_owned)));
    }

    #[test]
    fn a_program_that_did_not_get_to_its_tests_is_a_failure() {
        let mut results = Results::default();
        results.end(false);
        assert_eq!(results.counts(), Counts { passed: 0, failed: 1 });
    }
}
