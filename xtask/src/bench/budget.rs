//! The performance budget: what each line of the table must reach, as ratios to the official SDK in the same run.

use crate::bench::plan::WorkName;
use crate::bench::results::{Extra, Results};
use crate::bench::server::Kind;

/// A commit this slow takes the 256-connection line out of the budget.
const SLOW_COMMIT_MS: f64 = 4.0;
/// A long stream may be this much slower per event before the cost counts as growing with length.
const SAME_RATE: f64 = 0.8;
/// What a subscription may cost on top of bare axum's connection.
const SUBSCRIPTION_EXTRA_KIB: f64 = 8.0;
const MEMORY_MIB: f64 = 60.0;
const LIST_MS: f64 = 20.0;
const START_MS: f64 = 50.0;
/// Below what the clock and the scheduler add by themselves.
const WEBHOOK_NOISE_MS: f64 = 1.0;

/// A line's demand on one server: what it is in words, and whether it was met. None when it cannot be judged.
pub(crate) struct Demand {
    pub(crate) words: &'static str,
    pub(crate) judge: fn(&Results, Kind, f64) -> Option<bool>,
}

pub(crate) fn of_work(work: WorkName) -> Demand {
    match work {
        WorkName::Send => Demand {
            words: "process: ≥ 2 × official, p99 ≤ official's; full: ≥ 0.8 × min(1.5 × official, 32/f)",
            judge: send,
        },
        WorkName::SendMany => Demand { words: "full: ≥ 1.5 × official where f ≤ 4 ms", judge: send_many },
        WorkName::Stream => Demand {
            words: "≥ 5 × official, none lost",
            judge: |results, kind, _| ratio(results, WorkName::Stream, kind, 5.0),
        },
        WorkName::StreamYielding => Demand {
            words: "≥ 3 × official, none lost",
            judge: |results, kind, _| ratio(results, WorkName::StreamYielding, kind, 3.0),
        },
        WorkName::StreamLong => Demand { words: "same rate per event as `stream:100`", judge: stream_long },
        WorkName::GetHot => Demand {
            words: "≥ 1.5 × official",
            judge: |results, kind, _| ratio(results, WorkName::GetHot, kind, 1.5),
        },
        WorkName::GetRandom => Demand {
            words: "≥ 0.5 × official",
            judge: |results, kind, _| ratio(results, WorkName::GetRandom, kind, 0.5),
        },
        WorkName::OneClient => Demand { words: "process: ≤ 1 ms", judge: one_client },
    }
}

pub(crate) fn of_extra(extra: Extra) -> Demand {
    match extra {
        Extra::FilledMib => {
            Demand { words: "≤ 60 MiB", judge: |r, k, _| at_most(r, Extra::FilledMib, k, MEMORY_MIB) }
        }
        Extra::ListedMib => {
            Demand { words: "≤ 60 MiB", judge: |r, k, _| at_most(r, Extra::ListedMib, k, MEMORY_MIB) }
        }
        Extra::ListMs => Demand { words: "≤ 20 ms", judge: |r, k, _| at_most(r, Extra::ListMs, k, LIST_MS) },
        Extra::SubscriptionKib => Demand {
            words: "≤ bare axum's + 8 KiB",
            judge: |results, kind, _| {
                let ceiling = results.extra(Extra::SubscriptionKib, Kind::Axum)? + SUBSCRIPTION_EXTRA_KIB;
                at_most(results, Extra::SubscriptionKib, kind, ceiling)
            },
        },
        Extra::HeldStreamKib => Demand { words: "–", judge: |_, _, _| None },
        Extra::WebhookMs => Demand { words: "0", judge: |r, k, _| at_most(r, Extra::WebhookMs, k, WEBHOOK_NOISE_MS) },
        Extra::StartMs => Demand { words: "≤ 50 ms", judge: |r, k, _| at_most(r, Extra::StartMs, k, START_MS) },
    }
}

fn at_most(results: &Results, extra: Extra, kind: Kind, limit: f64) -> Option<bool> {
    Some(results.extra(extra, kind)? <= limit)
}

/// At least so many times the official rate, and not one error.
fn ratio(results: &Results, work: WorkName, kind: Kind, times: f64) -> Option<bool> {
    let ours = results.median(work, kind)?;
    let official = results.median(work, Kind::Official)?;
    Some(ours.errors == 0 && ours.rate >= times * official.rate)
}

fn send(results: &Results, kind: Kind, commit_latency_ms: f64) -> Option<bool> {
    let ours = results.median(WorkName::Send, kind)?;
    let official = results.median(WorkName::Send, Kind::Official)?;
    if kind == Kind::Process {
        return Some(ours.errors == 0 && ours.rate >= 2.0 * official.rate && ours.p99_ms <= official.p99_ms);
    }
    let disk_limit = 32.0 / (commit_latency_ms / 1000.0);
    Some(ours.errors == 0 && ours.rate >= 0.8 * disk_limit.min(1.5 * official.rate))
}

fn send_many(results: &Results, kind: Kind, commit_latency_ms: f64) -> Option<bool> {
    if kind != Kind::Full || commit_latency_ms > SLOW_COMMIT_MS {
        return None;
    }
    ratio(results, WorkName::SendMany, kind, 1.5)
}

fn stream_long(results: &Results, kind: Kind, _commit_latency_ms: f64) -> Option<bool> {
    let long = results.median(WorkName::StreamLong, kind)?;
    let short = results.median(WorkName::Stream, kind)?;
    Some(long.errors == 0 && long.rate >= SAME_RATE * short.rate)
}

fn one_client(results: &Results, kind: Kind, _commit_latency_ms: f64) -> Option<bool> {
    if kind != Kind::Process {
        return None;
    }
    let ours = results.median(WorkName::OneClient, kind)?;
    Some(ours.errors == 0 && ours.p50_ms <= 1.0)
}
