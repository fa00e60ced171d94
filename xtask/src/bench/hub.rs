//! What a hub in between adds: SendMessage to an agent, and to the same agent through a second server that serves it as a
//! remote one; and the memory of a hub that follows many tasks. Three processes share the cores, so none is pinned.

use crate::bench::Programs;
use crate::bench::load::{self, Rate, Subscriptions};
use crate::bench::number::{grouped, median};
use crate::bench::plan::Plan;
use crate::bench::server::{Kind, Placement, Server, ServerOptions};

/// The heading under which the table stands in docs/performance.md.
pub(crate) const HEADING: &str = "## What a hub adds to a call";

const MANY: u32 = 32;
/// The share of the direct rate that is left through a hub.
const RATE_BUDGET: f64 = 0.35;
/// What one client waits longer, at the median.
const DELAY_BUDGET_MS: f64 = 3.0;
/// Resident memory of a hub that follows as many tasks as `limits.remoteTasks` allows.
const MEMORY_BUDGET_MIB: f64 = 200.0;
const FOLLOWED: u64 = 4000;

/// The measurements of all rounds.
pub(crate) struct Hub {
    direct: Vec<(Rate, Rate)>,
    through: Vec<(Rate, Rate)>,
    followed: u64,
    followed_mib: f64,
    seconds: f64,
}

pub(crate) fn run(plan: &Plan, programs: &Programs) -> anyhow::Result<Hub> {
    let options = ServerOptions { many_running: true, placement: Placement::Unpinned, ..ServerOptions::default() };
    let remote = Server::start(Kind::Process, programs, options)?;
    let hub = Server::start_hub(&remote, programs, options)?;
    let (mut direct, mut through) = (Vec::new(), Vec::new());
    for round in 1..=plan.rounds {
        println!("\nhub, round {round} of {}", plan.rounds);
        direct.push(measure(plan, programs, &remote, "direct")?);
        through.push(measure(plan, programs, &hub, "through a hub")?);
    }
    let followed = if plan.quick { 200 } else { FOLLOWED };
    let (url, streams, pid) = (hub.url(), followed.to_string(), hub.pid().to_string());
    let words = ["--url", &url, "--streams", &streams, "--pid", &pid].map(str::to_owned);
    let held: Subscriptions = load::run_placed(programs, Placement::Unpinned, "subscriptions", &words, &[])?;
    let followed_mib = held.after_kib as f64 / 1024.0;
    println!("  {followed} followed tasks: {followed_mib:.1} MiB");
    Ok(Hub { direct, through, followed, followed_mib, seconds: plan.seconds })
}

/// With many connections, and with one.
fn measure(plan: &Plan, programs: &Programs, server: &Server, title: &str) -> anyhow::Result<(Rate, Rate)> {
    let of = |connections: u32| -> anyhow::Result<Rate> {
        let (url, connections, seconds) = (server.url(), connections.to_string(), plan.seconds.to_string());
        let words = ["--url", &url, "--connections", &connections, "--seconds", &seconds].map(str::to_owned);
        let rate: Rate = load::run_placed(programs, Placement::Unpinned, "send", &words, &[])?;
        let error = rate.first_error.as_deref().unwrap_or("no reason given");
        anyhow::ensure!(rate.errors == 0 && rate.completed > 0, "{title}: {} errors, the first: {error}", rate.errors);
        println!("  {title:<16} {connections:>3} at once {:>10.0}/s  p50 {:>7.3} ms", rate.rate, rate.p50_ms);
        Ok(rate)
    };
    Ok((of(MANY)?, of(1)?))
}

impl Hub {
    /// The share of the direct rate, and what one client waits longer: worked out in each round, of which the median
    /// counts.
    fn ratios(&self) -> Option<(f64, f64)> {
        let rounds = || self.direct.iter().zip(&self.through);
        let share = median(rounds().map(|(direct, through)| through.0.rate / direct.0.rate).collect())?;
        let added = median(rounds().map(|(direct, through)| through.1.p50_ms - direct.1.p50_ms).collect())?;
        Some((share, added))
    }

    pub(crate) fn is_met(&self) -> bool {
        let is_within = |(share, added)| share >= RATE_BUDGET && added <= DELAY_BUDGET_MS;
        self.ratios().is_some_and(is_within) && self.followed_mib <= MEMORY_BUDGET_MIB
    }

    /// The section of docs/performance.md.
    pub(crate) fn section(&self) -> String {
        let (share, added) = self.ratios().unwrap_or_default();
        let verdict = |is_met: bool| if is_met { "yes" } else { "**no**" };
        let middle = |rates: &[(Rate, Rate)], value: fn(&(Rate, Rate)) -> f64| {
            median(rates.iter().map(value).collect()).unwrap_or_default()
        };
        let rate = |rates: &[(Rate, Rate)]| grouped(middle(rates, |rates| rates.0.rate));
        let delay = |rates: &[(Rate, Rate)]| middle(rates, |rates| rates.1.p50_ms);
        format!(
            "{HEADING}\n\n\
             Made by `cargo xtask bench --hub --write`: SendMessage to an agent of one server, and to the same agent \
             through a second server, which serves it as a remote one; both with `durability: process`, all processes \
             on all cores, the median of {} interleaved rounds of {} s. Share and delay are worked out in each round. \
             The hub stores the task too, follows it at the other server, and answers when that has ended.\n\n\
             | work | direct | through a hub | | budget | met |\n|---|---|---|---|---|---|\n\
             | SendMessage at {MANY} connections, req/s | {} | {} | {share:.2} × | ≥ {RATE_BUDGET} × | {} |\n\
             | one client, p50, ms | {:.2} | {:.2} | + {added:.2} | ≤ + {DELAY_BUDGET_MS} | {} |\n\
             | memory of a hub that follows {} tasks, MiB | – | {:.1} | | ≤ {MEMORY_BUDGET_MIB} | {} |\n",
            self.direct.len(),
            self.seconds,
            rate(&self.direct),
            rate(&self.through),
            verdict(share >= RATE_BUDGET),
            delay(&self.direct),
            delay(&self.through),
            verdict(added <= DELAY_BUDGET_MS),
            grouped(self.followed as f64),
            self.followed_mib,
            verdict(self.followed_mib <= MEMORY_BUDGET_MIB),
        )
    }
}
