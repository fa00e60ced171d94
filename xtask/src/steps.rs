//! A list of named steps: all of them run, the failed ones are named at the end, and the counts are added up.

use std::time::{Duration, Instant};

/// One line of a command's plan.
pub(crate) struct Step {
    /// What the summary calls it.
    pub(crate) name: &'static str,
    /// Does the work. An error, or a failure in the counts, fails the step but not the steps after it.
    pub(crate) run: fn() -> anyhow::Result<Counts>,
}

/// How many checks passed and failed: tests where a step runs tests, the step itself where it is one check.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Counts {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
}

impl Counts {
    /// A step that is one check, and passed.
    pub(crate) const ONE: Counts = Counts { passed: 1, failed: 0 };

    pub(crate) fn add(&mut self, other: Counts) {
        self.passed += other.passed;
        self.failed += other.failed;
    }
}

/// Runs all steps in order; an error at the end if any of them failed.
pub(crate) fn run<'a>(steps: impl IntoIterator<Item = &'a Step>) -> anyhow::Result<()> {
    let mut total = Counts::default();
    let mut lines = Vec::new();
    let mut failed_steps = Vec::new();
    for step in steps {
        println!("\n==> {}", step.name);
        let start = Instant::now();
        let counts = (step.run)().unwrap_or_else(|error| {
            println!("error: {error:#}");
            Counts { passed: 0, failed: 1 }
        });
        if counts.failed > 0 {
            failed_steps.push(step.name);
        }
        total.add(counts);
        lines.push(line(step.name, counts, start.elapsed()));
    }
    println!("\n==> summary");
    for line in lines {
        println!("{line}");
    }
    println!("{} passed, {} failed", total.passed, total.failed);
    anyhow::ensure!(failed_steps.is_empty(), "failed: {}", failed_steps.join(", "));
    Ok(())
}

fn line(name: &str, counts: Counts, elapsed: Duration) -> String {
    let verdict = if counts.failed > 0 { "failed" } else { "ok" };
    let Counts { passed, failed } = counts;
    format!("{name:<20} {verdict:<8} {passed:>5} passed {failed:>4} failed {:>8.1} s", elapsed.as_secs_f64())
}
