//! Runs the test programs and reads what they print: `ok NAME`, and `not ok NAME: why`.

use anyhow::Context;
use std::collections::BTreeSet;
use std::process::{Command, Stdio};

use crate::program;
use crate::steps::Counts;

/// The names of tests.
pub(crate) type Names = BTreeSet<String>;

#[derive(Default)]
pub(crate) struct Results {
    names: Names,
    counts: Counts,
}

impl Results {
    /// Runs a program to its end, shows what it printed in one piece, because others run at the same time, and reads it.
    pub(crate) fn hear(&mut self, title: &str, program: &mut Command) -> anyhow::Result<()> {
        let output = program.stdin(Stdio::null()).output();
        let output = output.with_context(|| format!("cannot start {}", program.get_program().display()))?;
        let printed = String::from_utf8_lossy(&output.stdout);
        println!("\n-- {title}\n{printed}{}", String::from_utf8_lossy(&output.stderr));
        printed.lines().for_each(|line| self.read(line));
        self.end(output.status.success());
        Ok(())
    }

    /// Runs a program to its end, shows every line as it comes, and reads it.
    pub(crate) fn watch(&mut self, program: &mut Command) -> anyhow::Result<()> {
        let succeeded = program::watch(program.stdin(Stdio::null()), |line| self.read(line))?;
        self.end(succeeded);
        Ok(())
    }

    /// Takes one line of output; lines that are no result change nothing.
    fn read(&mut self, line: &str) {
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
    fn end(&mut self, succeeded: bool) {
        if !succeeded && self.counts.failed == 0 {
            self.counts.failed = 1;
        }
    }

    /// Those of another run of the same program.
    pub(crate) fn add(&mut self, other: Results) {
        self.names.extend(other.names);
        self.counts.add(other.counts);
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
