//! What the client adds to a call: SendMessage through it beside the same bytes through bare hyper and bare reqwest, all
//! against plain axum. The time of a call is compared within each round, and the median of the rounds counts.

use std::fmt::Write;
use std::process::Command;

use anyhow::Context;

use crate::bench::Programs;
use crate::bench::load::Rate;
use crate::bench::number::{grouped, median};
use crate::bench::plan::Plan;
use crate::bench::server::{Kind, Server, ServerOptions};
use crate::program;

/// A call through the client may take so many times as long as a bare one.
const MOST: f64 = 1.5;
/// Calls under way at the same time.
const CONCURRENT: [u32; 2] = [1, 32];

/// The heading under which the table stands in docs/performance.md.
pub(crate) const HEADING: &str = "## What the client adds to a call";

/// What the calls go through: the name for the program, the title, and whether the client is held to it.
const WAYS: [(&str, &str, bool); 4] = [
    ("connection", "one hyper connection, no pool", false),
    ("hyper", "hyper", true),
    ("reqwest", "reqwest", true),
    ("client", "the client", false),
];
const CLIENT: usize = WAYS.len() - 1;

/// The measurements of every round, by concurrency and way.
pub(crate) struct Calls {
    rounds: Vec<[[Rate; WAYS.len()]; CONCURRENT.len()]>,
    seconds: f64,
}

/// Measures every way in every round, one after another.
pub(crate) fn run(plan: &Plan, programs: &Programs) -> anyhow::Result<Calls> {
    let mut calls = Calls { rounds: Vec::new(), seconds: plan.seconds };
    let server = Server::start(Kind::Axum, programs, ServerOptions::default())?;
    for round in 1..=plan.rounds {
        println!("\ncalls, round {round} of {}", plan.rounds);
        let mut measured = Vec::new();
        for concurrent in CONCURRENT {
            let mut row = Vec::new();
            for (way, title, _) in WAYS {
                let rate = measure(plan, programs, &server, way, concurrent)?;
                let Rate { rate: per_second, p50_ms, .. } = rate;
                println!("  {concurrent:>3} at once  {title:<32} {per_second:>9.0}/s  p50 {p50_ms:>8.3} ms");
                row.push(rate);
            }
            measured.push(<[Rate; WAYS.len()]>::try_from(row).ok().context("a way is missing")?);
        }
        calls.rounds.push(<[_; CONCURRENT.len()]>::try_from(measured).ok().context("a measurement is missing")?);
    }
    Ok(calls)
}

fn measure(plan: &Plan, programs: &Programs, server: &Server, way: &str, concurrent: u32) -> anyhow::Result<Rate> {
    let mut command = Command::new("taskset");
    command.args(["-c", "1"]).arg(programs.calls()).args(["--json", "--way", way, "--url", &server.url()]);
    command.args(["--concurrent", &concurrent.to_string(), "--seconds", &plan.seconds.to_string()]);
    let text = program::output(&mut command)?;
    serde_json::from_str(text.trim()).with_context(|| format!("the calling program printed {text:?}"))
}

impl Calls {
    /// The section of docs/performance.md.
    pub(crate) fn section(&self) -> String {
        let mut section = format!(
            "{HEADING}\n\n\
             Made by `cargo xtask bench --client --write`: SendMessage to bare axum on one core, from one thread on \
             another; the median of {} interleaved rounds of {} s. The client finds the agent's card by its address, \
             writes a message with ids of its own for every call and reads the answer into a task; the others send the \
             same bytes, read the answer and do not look into it. How many times as long a call through the client takes \
             (p50) is worked out in each round, and the median of that counts. hyper's single connections, which have \
             nothing to choose and no other call to share with, show where the floor is.\n\n\
             | SendMessage through | 1 at once | the client takes | 32 at once | the client takes |\n\
             |---|---|---|---|---|\n",
            self.rounds.len(),
            self.seconds
        );
        for (way, (_, title, _)) in WAYS.iter().enumerate() {
            let cells: Vec<String> = (0..CONCURRENT.len()).map(|row| self.cells(row, way)).collect();
            // Writing to a string cannot fail.
            let _ = writeln!(section, "| {title} | {} |", cells.join(" | "));
        }
        let verdicts: Vec<String> = (0..CONCURRENT.len()).map(|row| self.verdict(row)).collect();
        let _ = writeln!(section, "\nBudget: at most {MOST} × of hyper and of reqwest. {}.", verdicts.join("; "));
        section
    }

    /// Whether the budget was met everywhere.
    pub(crate) fn is_met(&self) -> bool {
        (0..CONCURRENT.len()).all(|row| self.worst(row).is_some_and(|worst| worst <= MOST))
    }

    fn cells(&self, row: usize, way: usize) -> String {
        let of = |value: fn(&Rate) -> f64| median(self.rounds.iter().map(|round| value(&round[row][way])).collect());
        let (Some(rate), Some(p50)) = (of(|rate| rate.rate), of(|rate| rate.p50_ms)) else {
            return "– | –".to_owned();
        };
        let takes = match (way, self.ratio(row, way)) {
            (CLIENT, _) | (_, None) => "–".to_owned(),
            (_, Some(ratio)) => format!("{ratio:.2} ×"),
        };
        format!("{:.0} µs, {}/s | {takes}", p50 * 1000.0, grouped(rate))
    }

    /// How many times as long a call through the client takes.
    fn ratio(&self, row: usize, way: usize) -> Option<f64> {
        median(self.rounds.iter().map(|round| round[row][CLIENT].p50_ms / round[row][way].p50_ms).collect())
    }

    /// Against the quickest of those that the client is held to.
    fn worst(&self, row: usize) -> Option<f64> {
        let judged = WAYS.iter().enumerate().filter(|(_, (_, _, is_judged))| *is_judged);
        judged.filter_map(|(way, _)| self.ratio(row, way)).reduce(f64::max)
    }

    fn verdict(&self, row: usize) -> String {
        let met = match self.worst(row) {
            Some(worst) if worst <= MOST => "met",
            Some(_) => "**not met**",
            None => "not measured",
        };
        format!("{} at once: {met}", CONCURRENT[row])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(p50_ms: f64) -> Rate {
        Rate { rate: 1000.0 / p50_ms, p50_ms, p99_ms: p50_ms, completed: 1, errors: 0, first_error: None }
    }

    fn calls(client_ms: f64) -> Calls {
        let row = || [rate(0.9), rate(1.0), rate(1.2), rate(client_ms)];
        Calls { rounds: vec![[row(), row()]], seconds: 1.0 }
    }

    #[test]
    fn the_client_is_held_to_the_quickest_that_does_the_same() {
        assert!(calls(1.5).is_met() && calls(1.5).section().contains("1 at once: met; 32 at once: met"));
        assert!(!calls(1.51).is_met() && calls(1.51).section().contains("**not met**"));
        let section = calls(1.2).section();
        assert!(section.contains("| hyper | 1000 µs, 1,000/s | 1.20 × | 1000 µs, 1,000/s | 1.20 × |"), "{section}");
        assert!(section.contains("| the client | 1200 µs, 833/s | – |"), "{section}");
    }
}
