//! How late the events of command-line agents are: from the moment a program writes one to the moment its caller has
//! read it, with the released binary. The package `torture` measures; the promise is judged here alone, because it is a
//! figure of this machine.

use std::fmt::Write;
use std::process::Command;

use anyhow::Context;
use serde::Deserialize;

use crate::bench::Programs;
use crate::bench::number::median;
use crate::bench::plan::Plan;
use crate::program;

/// The heading under which the table stands in docs/performance.md.
pub(crate) const HEADING: &str = "## How late the events of command-line agents are";

/// The promise: an event takes less than this at the median.
const MOST_US: f64 = 1_000.0;

/// What `torture overhead --json` prints, of each measurement.
#[derive(Deserialize)]
struct Measured {
    durability: String,
    programs: usize,
    median_us: f64,
    p99_us: f64,
    slowest_median_us: f64,
    disk_us: f64,
}

/// The measurements of all rounds.
pub(crate) struct Lateness {
    measured: Vec<Measured>,
    rounds: u32,
}

pub(crate) fn build(programs: &Programs) -> anyhow::Result<()> {
    let build = ["build", "--profile", &programs.profile, "--package", "switchboard", "--package", "torture"];
    program::run(&mut program::cargo(&build))
}

pub(crate) fn run(plan: &Plan, programs: &Programs) -> anyhow::Result<Lateness> {
    let programs = programs.built();
    let mut measured = Vec::new();
    for _ in 0..plan.rounds {
        let mut command = Command::new(programs.join("torture"));
        command.args(["overhead", "--json", "--binary"]).arg(programs.join("switchboard"));
        let printed = program::output(&mut command)?;
        let round: Vec<Measured> = serde_json::from_str(&printed).context("what was measured cannot be read")?;
        measured.extend(round);
    }
    Ok(Lateness { measured, rounds: plan.rounds })
}

impl Lateness {
    /// The section of docs/performance.md.
    pub(crate) fn section(&self) -> String {
        let mut section = format!(
            "{HEADING}\n\n\
             Made by `cargo xtask bench --programs --write`: from the moment a program writes an event, by its own \
             timestamp, to the moment a client has read it off the stream; 200 events of each program, 5 ms apart, the \
             median of what {} rounds measured. With `full` an event is on the disk before any reader hears of it, and the last column \
             is what the disk alone takes for one such commit, measured before and after.\n\n\
             | durability | programs at once | median, µs | median of the slowest, µs | 99 of 100 within, µs | of it the disk, µs |\n\
             |---|---|---|---|---|---|\n",
            self.rounds,
        );
        for (durability, programs) in self.cases() {
            let of = |value: fn(&Measured) -> f64| self.median(durability, programs, value);
            let disk = of(|measured| measured.disk_us);
            let disk = if disk > 0.0 { format!("{disk:.0}") } else { "–".to_owned() };
            let (middle, slowest) = (of(|measured| measured.median_us), of(|measured| measured.slowest_median_us));
            let tail = of(|measured| measured.p99_us);
            // Writing to a string cannot fail.
            let _ =
                writeln!(section, "| `{durability}` | {programs} | {middle:.0} | {slowest:.0} | {tail:.0} | {disk} |");
        }
        let _ = writeln!(section, "\nBudget: less than 1,000 µs at the median. {}.", self.verdict());
        section
    }

    /// In the order in which they were first measured.
    fn cases(&self) -> Vec<(&str, usize)> {
        let mut cases = Vec::new();
        for measured in &self.measured {
            let case = (measured.durability.as_str(), measured.programs);
            if !cases.contains(&case) {
                cases.push(case);
            }
        }
        cases
    }

    fn median(&self, durability: &str, programs: usize, value: fn(&Measured) -> f64) -> f64 {
        let these = self.measured.iter().filter(|one| one.durability == durability && one.programs == programs);
        median(these.map(value).collect()).unwrap_or_default()
    }

    fn verdict(&self) -> String {
        let judged = self.cases().into_iter().map(|(durability, programs)| {
            let is_met = self.median(durability, programs, |measured| measured.median_us) < MOST_US;
            format!("`{durability}`, {programs} at once: {}", if is_met { "met" } else { "missed" })
        });
        judged.collect::<Vec<_>>().join("; ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_the_rounds_is_judged() {
        let measured = |durability: &str, median_us: f64| Measured {
            durability: durability.to_owned(),
            programs: 1,
            median_us,
            p99_us: 2_000.0,
            slowest_median_us: median_us,
            disk_us: 0.0,
        };
        let times = [
            ("process", 500.0),
            ("full", 900.0),
            ("process", 2_000.0),
            ("full", 1_200.0),
            ("process", 700.0),
            ("full", 1_100.0),
        ];
        let measured = times.into_iter().map(|(durability, median)| measured(durability, median)).collect();
        let section = Lateness { measured, rounds: 3 }.section();
        assert!(section.contains("| `process` | 1 | 700 | 700 | 2000 | – |"), "{section}");
        assert!(section.ends_with("`process`, 1 at once: met; `full`, 1 at once: missed.\n"), "{section}");
    }
}
