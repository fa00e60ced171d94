//! What webhooks add to the latency of their callers: SendMessage without any, with one to a good receiver, with one to
//! each kind of bad receiver, and beside tasks whose webhooks hang. A steady rate that leaves the server time, since at
//! full speed all that could be seen is that more work takes longer.

use std::fmt::Write;

use crate::bench::Programs;
use crate::bench::load::{self, Rate};
use crate::bench::number::median;
use crate::bench::plan::Plan;
use crate::bench::server::{Kind, Server, ServerOptions};

/// Messages a second, and over how many connections.
const PER_SECOND: u32 = 200;
const CONNECTIONS: u32 = 8;

/// The heading under which the table stands in docs/performance.md.
pub(crate) const HEADING: &str = "## What webhooks add to SendMessage";

struct Case {
    title: &'static str,
    options: &'static [&'static str],
}

/// The first two are what the others are compared with.
const CASES: [Case; 10] = [
    Case { title: "no webhook", options: &[] },
    Case { title: "answers 200 at once", options: &["--webhook", "good"] },
    Case { title: "is down", options: &["--webhook", "down"] },
    Case { title: "takes the connection and never answers", options: &["--webhook", "hang"] },
    Case { title: "answers after 2 s", options: &["--webhook", "slow"] },
    Case { title: "answers 500", options: &["--webhook", "fail"] },
    Case { title: "answers 429, Retry-After 1", options: &["--webhook", "busy"] },
    Case { title: "redirects", options: &["--webhook", "redirect"] },
    Case { title: "closes in the middle of its answer", options: &["--webhook", "cut-off"] },
    Case {
        title: "no webhook, while those of other tasks never get an answer",
        options: &["--webhook", "hang", "--beside"],
    },
];

const COLUMNS: [Kind; 2] = [Kind::Process, Kind::Full];

/// The measurements by case and server, one for each round.
pub(crate) struct Webhooks {
    rates: Vec<(usize, Kind, Rate)>,
    rounds: u32,
    seconds: f64,
}

/// Measures all cases in every round, each on a fresh server: what is not delivered yet must not weigh on the next.
pub(crate) fn run(plan: &Plan, programs: &Programs) -> anyhow::Result<Webhooks> {
    let mut webhooks = Webhooks { rates: Vec::new(), rounds: plan.rounds, seconds: plan.seconds };
    for round in 1..=plan.rounds {
        println!("\nwebhooks, round {round} of {}", plan.rounds);
        for (place, case) in CASES.iter().enumerate() {
            for kind in COLUMNS.into_iter().filter(|kind| plan.kinds.contains(kind)) {
                let rate = measure(plan, programs, case, kind)?;
                let (name, Rate { p50_ms, p99_ms, .. }) = (kind.name(), &rate);
                println!("  {:<62} {name:<22} p50 {p50_ms:>8.3} ms  p99 {p99_ms:>8.3} ms", case.title);
                webhooks.rates.push((place, kind, rate));
            }
        }
    }
    Ok(webhooks)
}

fn measure(plan: &Plan, programs: &Programs, case: &Case, kind: Kind) -> anyhow::Result<Rate> {
    let server = Server::start(kind, programs, ServerOptions { webhooks: true, ..ServerOptions::default() })?;
    let (per_second, connections) = (PER_SECOND.to_string(), CONNECTIONS.to_string());
    let (url, seconds) = (server.url(), plan.seconds.to_string());
    let fixed = ["--url", &url, "--connections", &connections, "--seconds", &seconds, "--per-second", &per_second];
    let options: Vec<String> = fixed.iter().chain(case.options).map(|word| (*word).to_owned()).collect();
    let rate: Rate = load::run(programs, "send", &options)?;
    let error = rate.first_error.as_deref().unwrap_or("no reason given");
    anyhow::ensure!(
        rate.errors == 0 && rate.completed > 0,
        "{}: {} errors, the first: {error}",
        case.title,
        rate.errors
    );
    Ok(rate)
}

impl Webhooks {
    /// The section of docs/performance.md.
    pub(crate) fn section(&self) -> String {
        let mut section = format!(
            "{HEADING}\n\n\
             Made by `cargo xtask bench --webhooks --write`: {PER_SECOND} messages a second over {CONNECTIONS} \
             connections, the median of {} interleaved rounds of {} s, each on a fresh server pinned to one core after a \
             second of the same load. Every message of a line carries a webhook to a receiver of the kind it names, and \
             the time of each is from the moment it was due to its answer, the finished task. A webhook is a row more to \
             store with the message and three deliveries to make on the same core, so the line to compare the bad \
             receivers with is the good one. In brackets, the lowest and the highest p99 of the rounds: where they are \
             far apart, other work on the machine is what the p99 shows.\n\n\
             | the receiver | Switchboard `process`, ms | Switchboard `full`, ms |\n|---|---|---|\n",
            self.rounds, self.seconds
        );
        for (place, case) in CASES.iter().enumerate() {
            let cells = COLUMNS.map(|kind| self.cell(place, kind));
            // Writing to a string cannot fail.
            let _ = writeln!(section, "| {} | {} |", case.title, cells.join(" | "));
        }
        section
    }

    /// Medians over the rounds, and between what the slowest requests of the rounds lay.
    fn cell(&self, place: usize, kind: Kind) -> String {
        let of = |value: fn(&Rate) -> f64| -> Vec<f64> {
            let rates = self.rates.iter().filter(|(case, server, _)| (*case, *server) == (place, kind));
            rates.map(|(_, _, rate)| value(rate)).collect()
        };
        let slowest = of(|rate| rate.p99_ms);
        let low = slowest.iter().copied().reduce(f64::min);
        let high = slowest.iter().copied().reduce(f64::max);
        match (median(of(|rate| rate.p50_ms)), median(slowest), low, high) {
            (Some(p50), Some(p99), Some(low), Some(high)) => {
                format!("p50 {p50:.2} / p99 {p99:.2} ({low:.2} to {high:.2})")
            }
            _ => "–".to_owned(),
        }
    }
}
