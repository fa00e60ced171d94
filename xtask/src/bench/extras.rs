//! What is not a rate: memory, listing over a full store, a webhook that hangs, and the time to start. Each is
//! measured on a fresh server, because memory that was given back to the allocator hides the next measurement.

use anyhow::Context;

use crate::bench::Programs;
use crate::bench::load::{self, Fill, First200, Rate, Subscriptions};
use crate::bench::plan::Plan;
use crate::bench::results::{Extra, Results};
use crate::bench::server::{Kind, Placement, Server, ServerOptions};

type Measure = fn(&Plan, &Programs, Kind) -> anyhow::Result<Vec<(Extra, f64)>>;

/// Measured for which servers, by name.
const MEASURES: &[(&str, &[Kind], Measure)] = &[
    ("memory", &[Kind::Official, Kind::Process], memory),
    ("memory per subscription", &[Kind::Axum, Kind::Official, Kind::Process, Kind::Full], subscriptions),
    ("memory per held stream", &[Kind::Axum, Kind::Official, Kind::Process, Kind::Full], held_streams),
    ("hanging webhook", &[Kind::Official, Kind::Process, Kind::Full], webhook),
    ("start", &[Kind::Process, Kind::Full], start),
    ("listing", &[Kind::Process], listing),
    ("bytes on disk", &[Kind::Process], disk),
];

/// A time that every task is after.
const LONG_AGO: &str = "2020-01-01T00:00:00Z";
/// Chunks of a stream whose bytes are counted.
const CHUNKS: u64 = 1_000;

/// A failure is noted and leaves a gap in the table; the rest is still worth having.
pub(crate) fn run(plan: &Plan, programs: &Programs, results: &mut Results) {
    println!("\nonce, each on a fresh server");
    for (name, suited, measure) in MEASURES {
        for kind in plan
            .kinds
            .iter()
            .filter(|kind| suited.iter().any(|suited| suited == *kind || suited.before() == Some(**kind)))
        {
            match measure(plan, programs, *kind) {
                Ok(values) => {
                    for (extra, value) in values {
                        println!("  {name:<26} {:<22} {extra:?} {value:.1}", kind.name());
                        results.set(extra, *kind, value);
                    }
                }
                Err(error) => results.fail(name, *kind, &error),
            }
        }
    }
}

fn memory(plan: &Plan, programs: &Programs, kind: Kind) -> anyhow::Result<Vec<(Extra, f64)>> {
    let server = Server::start(kind, programs, ServerOptions::default())?;
    Ok(vec![(Extra::FilledMib, fill(programs, &server, plan.filled)?)])
}

fn listing(plan: &Plan, programs: &Programs, kind: Kind) -> anyhow::Result<Vec<(Extra, f64)>> {
    let server = Server::start(kind, programs, ServerOptions::default())?;
    let resident_mib = fill(programs, &server, plan.listed)?;
    let options =
        options(&[("--url", &server.url()), ("--connections", "1"), ("--seconds", &plan.seconds.to_string())]);
    let listed = checked(load::run(programs, "list", &options)?)?;
    let since = [options, vec!["--since".to_owned(), LONG_AGO.to_owned()]].concat();
    let listed_since = checked(load::run(programs, "list", &since)?)?;
    let (seconds, tasks) = (plan.seconds.to_string(), plan.filled.to_string());
    let random = self::options(&[("--url", &server.url()), ("--seconds", &seconds), ("--tasks", &tasks)]);
    checked(load::run(programs, "get", &random)?)?;
    Ok(vec![
        (Extra::ListedMib, resident_mib),
        (Extra::ListMs, listed.p50_ms),
        (Extra::ListSinceMs, listed_since.p50_ms),
        (Extra::ReadMib, fill(programs, &server, 1)?),
    ])
}

/// What tasks take of the database file. The text of a chunk is about nine bytes, and stays out of what it takes.
fn disk(plan: &Plan, programs: &Programs, kind: Kind) -> anyhow::Result<Vec<(Extra, f64)>> {
    let server = Server::start(kind, programs, ServerOptions::default())?;
    fill(programs, &server, 1)?;
    let empty = server.stored_bytes()?;
    fill(programs, &server, plan.filled)?;
    let filled = server.stored_bytes()?;
    let text = format!("stream:{CHUNKS}");
    let options = options(&[("--url", &server.url()), ("--connections", "4"), ("--seconds", "1"), ("--text", &text)]);
    let streamed = checked(load::run(programs, "stream", &options)?)?;
    let chunk_text: u64 = (1..=CHUNKS).map(|number| format!("chunk {number}\n").len() as u64).sum();
    let each_stream = (server.stored_bytes()? - filled) as f64 / streamed.completed as f64;
    Ok(vec![
        (Extra::TaskBytes, (filled - empty) as f64 / plan.filled as f64),
        (Extra::ChunkBytes, (each_stream - chunk_text as f64) / CHUNKS as f64),
    ])
}

/// Resident MiB after so many finished tasks.
pub(crate) fn fill(programs: &Programs, server: &Server, tasks: u64) -> anyhow::Result<f64> {
    let options =
        options(&[("--url", &server.url()), ("--tasks", &tasks.to_string()), ("--pid", &server.pid().to_string())]);
    let fill: Fill = load::run(programs, "fill", &options)?;
    let resident_kib = fill.resident_kib.context("the load generator reported no memory")?;
    Ok(resident_kib as f64 / 1024.0)
}

fn subscriptions(plan: &Plan, programs: &Programs, kind: Kind) -> anyhow::Result<Vec<(Extra, f64)>> {
    Ok(vec![(Extra::SubscriptionKib, open_streams(plan, programs, kind, &["--one-task"])?)])
}

fn held_streams(plan: &Plan, programs: &Programs, kind: Kind) -> anyhow::Result<Vec<(Extra, f64)>> {
    Ok(vec![(Extra::HeldStreamKib, open_streams(plan, programs, kind, &[])?)])
}

fn open_streams(plan: &Plan, programs: &Programs, kind: Kind, flags: &[&str]) -> anyhow::Result<f64> {
    let server = Server::start(kind, programs, ServerOptions { many_running: true, ..ServerOptions::default() })?;
    let (streams, pid) = (plan.streams.to_string(), server.pid().to_string());
    let mut options = options(&[("--url", &server.url()), ("--streams", &streams), ("--pid", &pid)]);
    options.extend(flags.iter().map(|flag| (*flag).to_owned()));
    let opened: Subscriptions = load::run(programs, "subscriptions", &options)?;
    Ok(opened.kib_per_stream)
}

fn webhook(_plan: &Plan, programs: &Programs, kind: Kind) -> anyhow::Result<Vec<(Extra, f64)>> {
    let server = Server::start(kind, programs, ServerOptions { webhooks: true, ..ServerOptions::default() })?;
    let mut options = options(&[("--url", &server.url()), ("--connections", "1"), ("--seconds", "1")]);
    let without = checked(load::run(programs, "send", &options)?)?;
    options.extend(["--webhook", "hang"].map(str::to_owned));
    let with = checked(load::run(programs, "send", &options)?)?;
    Ok(vec![(Extra::WebhookMs, (with.p50_ms - without.p50_ms).max(0.0))])
}

fn start(plan: &Plan, programs: &Programs, kind: Kind) -> anyhow::Result<Vec<(Extra, f64)>> {
    let mut options = options(&[("--runs", &plan.starts.to_string())]);
    options.push("--".to_owned());
    options.extend(kind.command_line(programs, "127.0.0.1:{port}", "{directory}", ServerOptions::default()));
    let report: First200 = load::run_placed(programs, Placement::Pinned, "first-200", &options, kind.environment())?;
    Ok(vec![(Extra::StartMs, report.median_ms)])
}

fn checked(rate: Rate) -> anyhow::Result<Rate> {
    let error = rate.first_error.as_deref().unwrap_or("no reason given");
    anyhow::ensure!(rate.errors == 0 && rate.completed > 0, "{} errors, the first: {error}", rate.errors);
    Ok(rate)
}

pub(crate) fn options(pairs: &[(&str, &str)]) -> Vec<String> {
    pairs.iter().flat_map(|(name, value)| [(*name).to_owned(), (*value).to_owned()]).collect()
}
