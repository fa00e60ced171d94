//! Two binaries of Switchboard side by side: every line, how the one under test compares, and which lines are worse.

use std::fmt::Write;

use crate::bench::plan::{Plan, WorkName};
use crate::bench::report::extra_titles;
use crate::bench::results::Results;
use crate::bench::server::Kind;

/// A line that is worse by more than this is marked.
const ALLOWED: f64 = 0.05;

/// One measured line.
struct Line {
    title: String,
    kind: Kind,
    before: f64,
    now: f64,
    /// Rates should be high; times and memory should be low.
    more_is_better: bool,
}

pub(crate) fn table(plan: &Plan, results: &Results) -> String {
    let mut table = String::from("| work | server | before | now | change | |\n|---|---|---|---|---|---|\n");
    for line in lines(plan, results) {
        let Line { title, before, now, .. } = &line;
        let mark = if line.loss() > ALLOWED { "**worse**" } else { "" };
        let change = (now / before - 1.0) * 100.0;
        // Writing to a string cannot fail.
        let _ =
            writeln!(table, "| {title} | {} | {before:.2} | {now:.2} | {change:+.1} % | {mark} |", line.kind.name());
    }
    table
}

impl Line {
    /// The share of what there was that is lost; negative for a gain.
    fn loss(&self) -> f64 {
        let change = self.now / self.before - 1.0;
        if self.more_is_better { -change } else { change }
    }
}

fn lines(plan: &Plan, results: &Results) -> Vec<Line> {
    let pairs = [Kind::Process, Kind::Full].into_iter().filter_map(|kind| Some((kind, kind.before()?)));
    let mut lines = Vec::new();
    for (kind, before) in pairs {
        for work in &plan.works {
            let (Some(then), Some(now)) = (results.median(work.name, before), results.median(work.name, kind)) else {
                continue;
            };
            let is_time = work.name == WorkName::OneClient;
            let (then, now) = if is_time { (then.p50_ms, now.p50_ms) } else { (then.rate, now.rate) };
            lines.push(Line { title: work.title.clone(), kind, before: then, now, more_is_better: !is_time });
        }
        for (extra, title) in extra_titles(plan) {
            let (Some(then), Some(now)) = (results.extra(extra, before), results.extra(extra, kind)) else { continue };
            lines.push(Line { title, kind, before: then, now, more_is_better: false });
        }
    }
    lines
}
