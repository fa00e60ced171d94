//! How long one durable commit takes on this disk: the number f that decides what `durability: full` can reach.
//! It is what an SQLite commit waits for: some bytes appended to the log, then fdatasync.

use anyhow::Context;
use std::io::Write;
use std::path::Path;
use std::time::Instant;

use crate::bench::number;

const COMMITS: usize = 200;
const COMMIT_BYTES: usize = 4096;

pub(crate) struct CommitLatency {
    samples_ms: Vec<f64>,
}

impl CommitLatency {
    pub(crate) fn median_ms(&self) -> f64 {
        number::median(self.samples_ms.clone()).unwrap_or_default()
    }

    pub(crate) fn combine(mut self, other: &Self) -> Self {
        self.samples_ms.extend(&other.samples_ms);
        self
    }
}

pub(crate) fn measure(directory: &Path) -> anyhow::Result<CommitLatency> {
    let path = directory.join("commit-latency");
    let mut file = std::fs::File::create(&path).with_context(|| format!("cannot create {}", path.display()))?;
    let bytes = [0x5a; COMMIT_BYTES];
    let mut samples_ms = Vec::with_capacity(COMMITS);
    for _ in 0..COMMITS {
        let start = Instant::now();
        file.write_all(&bytes)?;
        file.sync_data()?;
        samples_ms.push(start.elapsed().as_secs_f64() * 1000.0);
    }
    drop(file);
    std::fs::remove_file(&path)?;
    let latency = CommitLatency { samples_ms };
    println!("commit latency f = {:.3} ms (median of {COMMITS} appends of 4 KiB with fdatasync)", latency.median_ms());
    Ok(latency)
}
