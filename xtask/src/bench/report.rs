//! The page that the bench prints and, with `--write`, leaves in docs/performance.md.

use std::fmt::Write;

use crate::bench::budget::{self, Demand};
use crate::bench::commit_latency::CommitLatency;
use crate::bench::number::grouped;
use crate::bench::plan::{Plan, Work, WorkName};
use crate::bench::results::{Extra, Results};
use crate::bench::server::{Kind, OFFICIAL_WEBHOOK_TIMEOUT_MS};

/// Written by hand after a profile: what the numbers do not say.
const PROFILE: &str = include_str!("../../../bench/profile.md");

const COLUMNS: [Kind; 4] = [Kind::Axum, Kind::Official, Kind::Process, Kind::Full];

pub(crate) fn page(plan: &Plan, results: &Results, commit_latency: &CommitLatency) -> String {
    let commit_latency_ms = commit_latency.median_ms();
    let mut page = introduction(plan, commit_latency_ms);
    page.push_str(
        "| work | bare axum | official Rust SDK | Switchboard `process` | Switchboard `full` | budget | met |\n",
    );
    page.push_str("|---|---|---|---|---|---|---|\n");
    for work in &plan.works {
        let cells = COLUMNS.map(|kind| rate_cell(results, work, kind));
        row(&mut page, &work.title, &cells, &budget::of_work(work.name), results);
    }
    for (extra, title) in extra_titles(plan) {
        let cells = COLUMNS.map(|kind| extra_cell(results, extra, kind));
        row(&mut page, &title, &cells, &budget::of_extra(extra), results);
    }
    page.push_str(&notes(plan, results));
    page
}

fn introduction(plan: &Plan, commit_latency_ms: f64) -> String {
    let rounds = match plan.rounds {
        1 => "one round".to_owned(),
        rounds => format!("the median of {rounds} interleaved rounds"),
    };
    let quick =
        if plan.quick { " This was a quick run: it shows that everything works, not how fast it is." } else { "" };
    format!(
        "# Performance\n\n\
         Made by `cargo xtask bench --write`: {rounds} of {} s, all servers up in the same run, each pinned to one core \
         and the load to another, except where a line says that both have all cores; HTTP/1.1 keep-alive, 32 connections unless the line says otherwise, TCP_NODELAY \
         everywhere. Every reply is checked. Bare axum parses and answers and stores nothing; the official SDK keeps \
         tasks in memory; Switchboard keeps them on disk, and logs at `warn` because the others log nothing.{quick}\n\n\
         Machine: {}. Commit latency f = {commit_latency_ms:.3} ms (4 KiB appended, fdatasync, median).\n\n\
         Absolute numbers are this machine's; the ratios (× official) are what carries over.\n\n",
        plan.seconds,
        machine()
    )
}

fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    let processors = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = processors.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let model = model.map_or("unknown processor", |(_, model)| model.trim());
    format!("{cores} cores, {model}, Linux {}", kernel.trim())
}

fn row(page: &mut String, title: &str, cells: &[String], demand: &Demand, results: &Results) {
    let verdicts: Vec<String> = [Kind::Process, Kind::Full]
        .into_iter()
        .filter_map(|kind| {
            let met = (demand.judge)(results, kind)?;
            let durability = if kind == Kind::Process { "process" } else { "full" };
            Some(format!("{durability} {}", if met { "yes" } else { "**no**" }))
        })
        .collect();
    let verdict = if verdicts.is_empty() { "–".to_owned() } else { verdicts.join(", ") };
    // Writing to a string cannot fail.
    let _ = writeln!(page, "| {title} | {} | {} | {verdict} |", cells.join(" | "), demand.words);
}

fn rate_cell(results: &Results, work: &Work, kind: Kind) -> String {
    let Some(median) = results.median(work.name, kind) else {
        return "–".to_owned();
    };
    let lost = match median.errors {
        0 => String::new(),
        errors => format!(", **{errors} of {} failed**", errors + median.completed),
    };
    if work.name == WorkName::OneClient {
        return format!("{:.2}{lost}", median.p50_ms);
    }
    let ratio = match results.median(work.name, Kind::Official) {
        Some(official) if kind != Kind::Official && official.rate > 0.0 => {
            format!(" ({:.2} ×)", median.rate / official.rate)
        }
        _ => String::new(),
    };
    format!("{}{ratio}, p50 {:.2} / p99 {:.2} ms{lost}", grouped(median.rate), median.p50_ms, median.p99_ms)
}

pub(crate) fn extra_titles(plan: &Plan) -> [(Extra, String); 11] {
    let (filled, listed) = (grouped(plan.filled as f64), grouped(plan.listed as f64));
    let streams = grouped(plan.streams as f64);
    [
        (Extra::ListMs, format!("ListTasks, page of 50 and total at {listed} tasks, ms")),
        (Extra::ListSinceMs, format!("the same with a `statusTimestampAfter` that all {listed} match, ms")),
        (Extra::TaskBytes, "bytes on disk for a short task".to_owned()),
        (Extra::ChunkBytes, "bytes on disk for a small chunk, beside its text".to_owned()),
        (Extra::FilledMib, format!("memory after {filled} tasks, MiB")),
        (Extra::ListedMib, format!("memory after {listed} tasks, MiB")),
        (Extra::ReadMib, format!("memory after {listed} tasks, lists and random reads, MiB")),
        (Extra::SubscriptionKib, format!("memory per subscription, {streams} open, KiB")),
        (Extra::HeldStreamKib, format!("memory per stream with a running task of its own, {streams} open, KiB")),
        (Extra::WebhookMs, "a hanging webhook adds to the caller, ms".to_owned()),
        (Extra::StartMs, format!("exec to first 200 on /healthz, median of {}, ms", plan.starts)),
    ]
}

fn extra_cell(results: &Results, extra: Extra, kind: Kind) -> String {
    results.extra(extra, kind).map_or("–".to_owned(), |value| format!("{value:.1}"))
}

fn notes(plan: &Plan, results: &Results) -> String {
    let mut notes = format!(
        "\nThe official SDK waits for each webhook before it goes on; here its timeout was {OFFICIAL_WEBHOOK_TIMEOUT_MS} ms, \
         its default is 30 s.\n"
    );
    let first_errors: Vec<String> = plan
        .works
        .iter()
        .flat_map(|work| COLUMNS.map(|kind| (work, kind)))
        .filter_map(|(work, kind)| {
            let error = results.median(work.name, kind)?.first_error?;
            Some(format!("- {}, {}: {error}\n", work.title, kind.name()))
        })
        .collect();
    if !first_errors.is_empty() {
        notes.push_str("\nFirst error of each line that has any:\n\n");
        notes.push_str(&first_errors.concat());
    }
    if !results.failures.is_empty() {
        notes.push_str("\nNot measured:\n\n");
        for failure in &results.failures {
            let _ = writeln!(notes, "- {failure}");
        }
    }
    notes.push_str(PROFILE);
    notes
}
