//! What the hub costs: a message with and without it on one server; SendMessage to an agent, and to the same agent
//! through a second server that serves it as a remote one; the memory of a hub that follows many tasks, or keeps many that
//! wait for an answer. Where several processes share the cores, none is pinned.

use crate::bench::Programs;
use crate::bench::extras;
use crate::bench::load::{self, Fill, Rate};
use crate::bench::number::{grouped, median};
use crate::bench::plan::Plan;
use crate::bench::server::{Kind, Placement, Server, ServerOptions};

/// The heading under which the table stands in docs/performance.md.
pub(crate) const HEADING: &str = "## What a hub adds to a call";

const MANY: u32 = 32;
/// The share of the rate that is left beside the readers of the log.
const PROJECTOR_BUDGET: f64 = 0.95;
/// How much longer the server works on a message if every row of the feed is read.
const FEED_BUDGET: f64 = 1.03;
/// The share of the direct rate that is left through a hub.
const RATE_BUDGET: f64 = 0.35;
/// What one client waits longer, at the median.
const DELAY_BUDGET_MS: f64 = 3.0;
/// Resident memory of a hub that follows as many tasks as `limits.remoteTasks` allows.
const MEMORY_BUDGET_MIB: f64 = 200.0;
const FOLLOWED: u64 = 4000;
/// What a hub gains by a task that waits: next to nothing, since it is a row.
const WAITING_BUDGET_KIB: f64 = 1.0;
const WAITING: u64 = 20_000;

/// One round on a server of its own: the rate, and what the server has computed for a message.
struct Beside {
    rate: f64,
    cpu_micros: f64,
}

/// The measurements of all rounds.
pub(crate) struct Hub {
    without: Vec<Beside>,
    reader: Vec<Beside>,
    with: Vec<Beside>,
    direct: Vec<(Rate, Rate)>,
    through: Vec<(Rate, Rate)>,
    followed: u64,
    followed_mib: f64,
    waiting: u64,
    waiting_kib: f64,
    seconds: f64,
}

pub(crate) fn run(plan: &Plan, programs: &Programs) -> anyhow::Result<Hub> {
    let [without, reader, with] = beside_readers(plan, programs)?;
    let options = ServerOptions { many_running: true, placement: Placement::Unpinned, ..ServerOptions::default() };
    let remote = Server::start(Kind::Process, programs, options)?;
    let hub = Server::start_hub(&remote, programs, options)?;
    let (mut direct, mut through) = (Vec::new(), Vec::new());
    for round in 1..=plan.rounds {
        println!("\nhub, round {round} of {}", plan.rounds);
        let both = |server: &Server, title: &str| -> anyhow::Result<(Rate, Rate)> {
            let place = Placement::Unpinned;
            Ok((
                measure(plan, programs, server, place, MANY, title)?,
                measure(plan, programs, server, place, 1, title)?,
            ))
        };
        direct.push(both(&remote, "direct")?);
        through.push(both(&hub, "through a hub")?);
    }
    // A fresh one each, since memory that was given back to the allocator hides the next measurement.
    drop(hub);
    let (followed, waiting) = if plan.quick { (200, 500) } else { (FOLLOWED, WAITING) };
    let followed_mib = memory_of_followed(programs, &Server::start_hub(&remote, programs, options)?, followed)?;
    println!("  {followed} followed tasks: {followed_mib:.1} MiB");
    let waiting_kib = memory_of_waiting(programs, &Server::start_hub(&remote, programs, options)?, waiting)?;
    println!("  {waiting} tasks that wait for an answer: {waiting_kib:.2} KiB each");
    let seconds = plan.seconds;
    Ok(Hub { without, reader, with, direct, through, followed, followed_mib, waiting, waiting_kib, seconds })
}

/// The same agent on the same server: without the hub, with a reader of the feed alone, and with the hub. Only one of them
/// is under load at a time.
fn beside_readers(plan: &Plan, programs: &Programs) -> anyhow::Result<[Vec<Beside>; 3]> {
    let start = |kind| Server::start(kind, programs, ServerOptions::default());
    let servers = [start(Kind::WithoutHub)?, start(Kind::FeedReader)?, start(Kind::Process)?];
    let mut measured: [Vec<Beside>; 3] = Default::default();
    for round in 1..=plan.rounds {
        println!("\nreaders of the log, round {round} of {}", plan.rounds);
        for (server, measured) in servers.iter().zip(&mut measured) {
            let before = server.cpu_seconds()?;
            let rate = measure(plan, programs, server, Placement::Pinned, MANY, server.kind().name())?;
            let cpu_micros = (server.cpu_seconds()? - before) * 1e6 / rate.completed as f64;
            println!("  {cpu_micros:>52.2} µs of the core for a message");
            measured.push(Beside { rate: rate.rate, cpu_micros });
        }
    }
    Ok(measured)
}

fn measure(
    plan: &Plan,
    programs: &Programs,
    server: &Server,
    placement: Placement,
    connections: u32,
    title: &str,
) -> anyhow::Result<Rate> {
    let (connections, seconds) = (connections.to_string(), plan.seconds.to_string());
    let words = extras::options(&[("--url", &server.url()), ("--connections", &connections), ("--seconds", &seconds)]);
    let rate: Rate = load::run_placed(programs, placement, "send", &words, &[])?;
    let error = rate.first_error.as_deref().unwrap_or("no reason given");
    anyhow::ensure!(rate.errors == 0 && rate.completed > 0, "{title}: {} errors, the first: {error}", rate.errors);
    println!("  {title:<16} {connections:>3} at once {:>10.0}/s  p50 {:>7.3} ms", rate.rate, rate.p50_ms);
    Ok(rate)
}

/// Resident MiB of a hub that follows so many tasks, none of which has a client that waits.
fn memory_of_followed(programs: &Programs, hub: &Server, tasks: u64) -> anyhow::Result<f64> {
    let (url, tasks_word) = (hub.url(), tasks.to_string());
    let mut words = extras::options(&[("--url", &url), ("--tasks", &tasks_word), ("--text", "hold")]);
    words.push("--immediately".to_owned());
    load::run_placed::<Fill>(programs, Placement::Unpinned, "fill", &words, &[])?;
    hub.wait_for_gauge("switchboard_remote_attached", tasks)?;
    // Another task would have to wait for a place.
    hub.resident_mib()
}

/// What a hub has gained in KiB for each of so many tasks that wait, here and at the other server, for an answer.
fn memory_of_waiting(programs: &Programs, hub: &Server, tasks: u64) -> anyhow::Result<f64> {
    // As many ended ones first: what caches take of them they would take of those that wait.
    let before = extras::fill(programs, hub, tasks)?;
    let words = extras::options(&[("--url", &hub.url()), ("--tasks", &tasks.to_string()), ("--text", "ask")]);
    load::run_placed::<Fill>(programs, Placement::Unpinned, "fill", &words, &[])?;
    let after = hub.resident_mib()?;
    Ok((after - before).max(0.0) * 1024.0 / tasks as f64)
}

impl Hub {
    /// The share of the rate that is left beside the projector: worked out in each round, of which the median counts.
    fn projector_share(&self) -> Option<f64> {
        median(self.without.iter().zip(&self.with).map(|(without, with)| with.rate / without.rate).collect())
    }

    /// How many times as long the server works on a message while a reader takes every row.
    fn feed_share(&self) -> Option<f64> {
        let rounds = self.without.iter().zip(&self.reader);
        median(rounds.map(|(without, reader)| reader.cpu_micros / without.cpu_micros).collect())
    }

    /// The share of the direct rate, and what one client waits longer, likewise.
    fn ratios(&self) -> Option<(f64, f64)> {
        let rounds = || self.direct.iter().zip(&self.through);
        let share = median(rounds().map(|(direct, through)| through.0.rate / direct.0.rate).collect())?;
        let added = median(rounds().map(|(direct, through)| through.1.p50_ms - direct.1.p50_ms).collect())?;
        Some((share, added))
    }

    pub(crate) fn is_met(&self) -> bool {
        let is_within = |(share, added)| share >= RATE_BUDGET && added <= DELAY_BUDGET_MS;
        self.projector_share().is_some_and(|share| share >= PROJECTOR_BUDGET)
            && self.feed_share().is_some_and(|share| share <= FEED_BUDGET)
            && self.ratios().is_some_and(is_within)
            && self.followed_mib <= MEMORY_BUDGET_MIB
            && self.waiting_kib <= WAITING_BUDGET_KIB
    }

    /// The section of docs/performance.md.
    pub(crate) fn section(&self) -> String {
        let beside = self.projector_share().unwrap_or_default();
        let (share, added) = self.ratios().unwrap_or_default();
        let verdict = |is_met: bool| if is_met { "yes" } else { "**no**" };
        let middle = |values: Vec<f64>| median(values).unwrap_or_default();
        let feed = self.feed_share().unwrap_or_default();
        let alone = |rounds: &[Beside]| grouped(middle(rounds.iter().map(|round| round.rate).collect()));
        let cpu = |rounds: &[Beside]| middle(rounds.iter().map(|round| round.cpu_micros).collect());
        let rate = |rates: &[(Rate, Rate)]| grouped(middle(rates.iter().map(|rates| rates.0.rate).collect()));
        let delay = |rates: &[(Rate, Rate)]| middle(rates.iter().map(|rates| rates.1.p50_ms).collect());
        format!(
            "{HEADING}\n\n\
             Made by `cargo xtask bench --hub --write`, all with `durability: process`, the median of {} interleaved \
             rounds of {} s; shares and delays are worked out in each round. First SendMessage, pinned to one core, on \
             a server without the hub, on one where in place of the hub a reader takes every row of the feed and does \
             nothing with it, and on one whose projector reads every row. Then SendMessage to an agent of one \
             server, and to the same agent through a second server, which serves it as a remote one, all processes on \
             all cores: the hub stores the task too, follows it at the other server, and answers when that has ended. \
             Memory is measured on a fresh hub: with tasks that it follows while no client waits, and with tasks that \
             wait for an answer, here and there.\n\n\
             | work | without | with | | budget | met |\n|---|---|---|---|---|---|\n\
             | time of the core for a message beside a reader of the feed, µs | {:.2} | {:.2} | {feed:.3} × | ≤ {FEED_BUDGET} × | {} |\n\
             | SendMessage beside the projector, req/s | {} | {} | {beside:.2} × | ≥ {PROJECTOR_BUDGET} × | {} |\n\
             | SendMessage through a hub at {MANY} connections, req/s | {} | {} | {share:.2} × | ≥ {RATE_BUDGET} × | {} |\n\
             | the same, one client, p50, ms | {:.2} | {:.2} | + {added:.2} | ≤ + {DELAY_BUDGET_MS} | {} |\n\
             | memory of a hub that follows {} tasks, MiB | – | {:.1} | | ≤ {MEMORY_BUDGET_MIB} | {} |\n\
             | memory for each of {} tasks that wait, KiB | – | {:.2} | | ≤ {WAITING_BUDGET_KIB} | {} |\n",
            self.direct.len(),
            self.seconds,
            cpu(&self.without),
            cpu(&self.reader),
            verdict(feed <= FEED_BUDGET),
            alone(&self.without),
            alone(&self.with),
            verdict(beside >= PROJECTOR_BUDGET),
            rate(&self.direct),
            rate(&self.through),
            verdict(share >= RATE_BUDGET),
            delay(&self.direct),
            delay(&self.through),
            verdict(added <= DELAY_BUDGET_MS),
            grouped(self.followed as f64),
            self.followed_mib,
            verdict(self.followed_mib <= MEMORY_BUDGET_MIB),
            grouped(self.waiting as f64),
            self.waiting_kib,
            verdict(self.waiting_kib <= WAITING_BUDGET_KIB),
        )
    }
}
