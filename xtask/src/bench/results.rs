//! What was measured, by work and server.

use std::collections::BTreeMap;

use crate::bench::load::Rate;
use crate::bench::number::median;
use crate::bench::plan::WorkName;
use crate::bench::server::Kind;

#[derive(Default)]
pub(crate) struct Results {
    rates: BTreeMap<(WorkName, Kind), Vec<Rate>>,
    extras: BTreeMap<(Extra, Kind), f64>,
    /// Measurements that could not be taken, in words.
    pub(crate) failures: Vec<String>,
}

/// What is measured once, on a server of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Extra {
    /// Resident MiB after many finished tasks.
    FilledMib,
    /// The same after as many as listing is measured over.
    ListedMib,
    /// The same after lists and random reads.
    ReadMib,
    /// A page of 50 and the total, ms.
    ListMs,
    /// The same with a time that every task is after.
    ListSinceMs,
    /// Bytes of the database file for a short task.
    TaskBytes,
    /// The same for a small chunk, beside its text.
    ChunkBytes,
    /// KiB per subscription to one task.
    SubscriptionKib,
    /// KiB per stream that holds a task of its own.
    HeldStreamKib,
    /// What a webhook that never answers adds to SendMessage, ms.
    WebhookMs,
    /// From exec to the first 200, ms.
    StartMs,
}

/// Medians over the rounds; errors of all rounds together.
pub(crate) struct Median {
    pub(crate) rate: f64,
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
    pub(crate) completed: u64,
    pub(crate) errors: u64,
    pub(crate) first_error: Option<String>,
}

impl Results {
    pub(crate) fn add(&mut self, work: WorkName, kind: Kind, rate: Rate) {
        self.rates.entry((work, kind)).or_default().push(rate);
    }

    pub(crate) fn set(&mut self, extra: Extra, kind: Kind, value: f64) {
        self.extras.insert((extra, kind), value);
    }

    pub(crate) fn fail(&mut self, what: &str, kind: Kind, error: &anyhow::Error) {
        let failure = format!("{what}, {}: {error:#}", kind.name());
        println!("failed: {failure}");
        self.failures.push(failure);
    }

    pub(crate) fn extra(&self, extra: Extra, kind: Kind) -> Option<f64> {
        self.extras.get(&(extra, kind)).copied()
    }

    pub(crate) fn median(&self, work: WorkName, kind: Kind) -> Option<Median> {
        let rates = self.rates.get(&(work, kind))?;
        let of = |value: fn(&Rate) -> f64| median(rates.iter().map(value).collect());
        Some(Median {
            rate: of(|rate| rate.rate)?,
            p50_ms: of(|rate| rate.p50_ms)?,
            p99_ms: of(|rate| rate.p99_ms)?,
            completed: rates.iter().map(|rate| rate.completed).sum(),
            errors: rates.iter().map(|rate| rate.errors).sum(),
            first_error: rates.iter().find_map(|rate| rate.first_error.clone()),
        })
    }
}
