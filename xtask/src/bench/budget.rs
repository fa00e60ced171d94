//! The performance budget: what each line of the table must reach, as ratios to the official SDK in the same run.

use crate::bench::plan::WorkName;
use crate::bench::results::{Extra, Results};
use crate::bench::server::Kind;

/// A long stream may be this much slower per event before the cost counts as growing with length.
const SAME_RATE: f64 = 0.8;
/// What a subscription may cost on top of bare axum's connection.
const SUBSCRIPTION_EXTRA_KIB: f64 = 8.0;
const MEMORY_MIB: f64 = 60.0;
const LIST_MS: f64 = 20.0;
const TASK_BYTES: f64 = 1_200.0;
const CHUNK_BYTES: f64 = 150.0;
const START_MS: f64 = 50.0;
/// Below what the clock and the scheduler add by themselves.
const WEBHOOK_NOISE_MS: f64 = 1.0;

/// A line's demand on one server: what it is in words, and whether it was met. None when it cannot be judged.
pub(crate) struct Demand {
    pub(crate) words: &'static str,
    pub(crate) judge: fn(&Results, Kind) -> Option<bool>,
}

pub(crate) fn of_work(work: WorkName) -> Demand {
    match work {
        WorkName::Send => Demand {
            words: "process: ≥ 1.25 × official, p99 ≤ official's; full: ≥ 1 ×",
            judge: |results, kind| send(results, WorkName::Send, kind, 1.25, 1.0),
        },
        WorkName::SendUnpinned => Demand {
            words: "process: ≥ 1.7 × official, p99 ≤ official's; full: ≥ 1.3 ×",
            judge: |results, kind| send(results, WorkName::SendUnpinned, kind, 1.7, 1.3),
        },
        WorkName::SendMany => Demand { words: "–", judge: |_, _| None },
        WorkName::Stream => Demand {
            words: "≥ 5 × official, none lost",
            judge: |results, kind| ratio(results, WorkName::Stream, kind, 5.0),
        },
        WorkName::StreamYielding => Demand {
            words: "≥ 3 × official, none lost",
            judge: |results, kind| ratio(results, WorkName::StreamYielding, kind, 3.0),
        },
        WorkName::StreamLong => Demand { words: "same rate per event as `stream:100`", judge: stream_long },
        WorkName::GetHot => {
            Demand { words: "≥ 1.5 × official", judge: |results, kind| ratio(results, WorkName::GetHot, kind, 1.5) }
        }
        WorkName::GetRandom => Demand {
            words: "≥ 0.5 × official",
            judge: |results, kind| ratio(results, WorkName::GetRandom, kind, 0.5),
        },
        WorkName::OneClient => Demand { words: "process: ≤ 1 ms", judge: one_client },
    }
}

pub(crate) fn of_extra(extra: Extra) -> Demand {
    match extra {
        Extra::FilledMib => Demand { words: "≤ 60 MiB", judge: |r, k| at_most(r, Extra::FilledMib, k, MEMORY_MIB) },
        Extra::ListedMib => Demand { words: "≤ 60 MiB", judge: |r, k| at_most(r, Extra::ListedMib, k, MEMORY_MIB) },
        Extra::ReadMib => Demand { words: "≤ 60 MiB", judge: |r, k| at_most(r, Extra::ReadMib, k, MEMORY_MIB) },
        Extra::ListMs => Demand { words: "≤ 20 ms", judge: |r, k| at_most(r, Extra::ListMs, k, LIST_MS) },
        Extra::ListSinceMs => Demand { words: "≤ 20 ms", judge: |r, k| at_most(r, Extra::ListSinceMs, k, LIST_MS) },
        Extra::TaskBytes => Demand { words: "≤ 1,200", judge: |r, k| at_most(r, Extra::TaskBytes, k, TASK_BYTES) },
        Extra::ChunkBytes => Demand { words: "≤ 150", judge: |r, k| at_most(r, Extra::ChunkBytes, k, CHUNK_BYTES) },
        Extra::SubscriptionKib => Demand {
            words: "≤ bare axum's + 8 KiB",
            judge: |results, kind| {
                let ceiling = results.extra(Extra::SubscriptionKib, Kind::Axum)? + SUBSCRIPTION_EXTRA_KIB;
                at_most(results, Extra::SubscriptionKib, kind, ceiling)
            },
        },
        Extra::HeldStreamKib => Demand { words: "–", judge: |_, _| None },
        Extra::WebhookMs => Demand { words: "0", judge: |r, k| at_most(r, Extra::WebhookMs, k, WEBHOOK_NOISE_MS) },
        Extra::StartMs => Demand { words: "≤ 50 ms", judge: |r, k| at_most(r, Extra::StartMs, k, START_MS) },
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

/// So many times the official rate, which differs by durability, and with `process` no slower in the slowest requests.
fn send(results: &Results, work: WorkName, kind: Kind, process: f64, full: f64) -> Option<bool> {
    if kind != Kind::Process {
        return ratio(results, work, kind, full);
    }
    let (ours, official) = (results.median(work, kind)?, results.median(work, Kind::Official)?);
    Some(ratio(results, work, kind, process)? && ours.p99_ms <= official.p99_ms)
}

fn stream_long(results: &Results, kind: Kind) -> Option<bool> {
    let long = results.median(WorkName::StreamLong, kind)?;
    let short = results.median(WorkName::Stream, kind)?;
    Some(long.errors == 0 && long.rate >= SAME_RATE * short.rate)
}

fn one_client(results: &Results, kind: Kind) -> Option<bool> {
    if kind != Kind::Process {
        return None;
    }
    let ours = results.median(WorkName::OneClient, kind)?;
    Some(ours.errors == 0 && ours.p50_ms <= 1.0)
}
