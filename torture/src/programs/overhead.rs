//! How long an event of a program takes to its caller: from the moment the program writes it to the moment a client
//! has read it off the wire.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context;
use serde_json::Value;

use crate::calls::Send;
use crate::compare::Problems;
use crate::http::Connection;
use crate::programs::speaker;
use crate::server::{Place, Server, folder, tail};

/// How many programs speak at once, when it is many.
const MANY: usize = 8;
/// How many events each of them tells, and how many milliseconds apart.
const EVENTS: usize = 200;
const PAUSE_MS: u64 = 5;
/// The promise, in microseconds at the median.
const MOST: u64 = 1_000;
/// With many at once the median of none may be more than twice the single one's, or this.
const MOST_OF_MANY: u64 = 2_000;
/// Other things run on this machine. What holds once does hold.
const TRIES: usize = 5;

/// How often the disk is asked for its own time, before and after each measurement, and with how much.
const SYNCS: usize = 100;
const SYNC_BYTES: usize = 4096;

/// What was measured.
#[derive(Default)]
pub struct Outcome {
    /// In the order it was measured.
    pub measured: Vec<Measured>,
    /// What did not hold.
    pub problems: Problems,
}

/// How late the events of some programs were that spoke at once.
#[derive(serde::Serialize)]
pub struct Measured {
    durability: &'static str,
    programs: usize,
    median_us: u64,
    p99_us: u64,
    slowest_median_us: u64,
    /// What one commit waits for the disk at the median: no part of the bridge, and of `full` alone.
    disk_us: u64,
}

impl Measured {
    fn of(durability: &'static str, all: &[Delays], disk_us: u64) -> Self {
        let mut together: Vec<u64> = all.iter().flat_map(|delays| delays.0.iter().copied()).collect();
        together.sort_unstable();
        let together = Delays(together);
        Self {
            durability,
            programs: all.len(),
            median_us: together.median(),
            p99_us: together.at(99),
            slowest_median_us: all.iter().map(Delays::median).max().unwrap_or_default(),
            disk_us,
        }
    }

    /// What the bridge itself takes of the slowest program's median.
    fn bridge_us(&self) -> u64 {
        self.slowest_median_us.saturating_sub(self.disk_us)
    }
}

impl std::fmt::Display for Measured {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { durability, programs, median_us, p99_us, slowest_median_us, disk_us } = self;
        write!(
            formatter,
            "{durability}, {programs} at once: median {median_us} µs, of the slowest {slowest_median_us} µs, 99 of 100 \
             within {p99_us} µs; the disk's part of a commit is {disk_us} µs"
        )
    }
}

/// The delays of one program's events, in microseconds, in order of size.
struct Delays(Vec<u64>);

impl Delays {
    fn at(&self, percent: usize) -> u64 {
        self.0.get((self.0.len() * percent / 100).min(self.0.len().saturating_sub(1))).copied().unwrap_or_default()
    }

    fn median(&self) -> u64 {
        self.at(50)
    }
}

/// Measures with both durabilities and holds both to the promise, `full` without what the disk takes for its commits. A
/// thread that has waited for a disk is also woken later than one that has not, more so on a busy machine: `full` may
/// take twice as long as `process` did in the same run.
pub fn run(binary: &Path) -> anyhow::Result<Outcome> {
    let speaker = std::env::current_exe()?;
    let mut outcome = Outcome::default();
    let mut most = MOST;
    for durability in ["process", "full"] {
        let scratch = tempfile::tempdir()?;
        let workspace = folder(scratch.path(), "workspace")?;
        std::fs::write(workspace.join("agents.yaml"), agents(&speaker))?;
        let log = scratch.path().join("server.log");
        let place = Place { binary: binary.to_owned(), workspace, durability, log };
        let server = place.start()?;
        let single = measure(&server, durability, most, scratch.path(), &mut outcome)
            .with_context(|| format!("the server's log ends with:\n{}\n", tail(&place.log)))?;
        most = MOST.max(2 * single);
    }
    Ok(outcome)
}

fn agents(speaker: &PathBuf) -> String {
    format!(
        "agents:\n  - {{ name: speaker, cli: generic, command: [{speaker:?}, speak, --count, \"{EVENTS}\", --pause-ms, \
         \"{PAUSE_MS}\"], output: jsonl, repoLock: false, maxParallel: {MANY} }}\n"
    )
}

/// Tries until the promise holds, or often enough. Says how long a single program's event took at last.
fn measure(
    server: &Server,
    durability: &'static str,
    promised: u64,
    scratch: &Path,
    outcome: &mut Outcome,
) -> anyhow::Result<u64> {
    // The first of all opens files and fills caches.
    listen(server, 1)?;
    let mut problems = Problems::new();
    let mut single = 0;
    for number in 0..TRIES {
        problems.clear();
        let mut disk = if durability == "full" { syncs(scratch)? } else { Vec::new() };
        let one = listen(server, 1)?;
        let many = listen(server, MANY)?;
        if durability == "full" {
            disk.extend(syncs(scratch)?);
            disk.sort_unstable();
        }
        let disk_us = Delays(disk).median();
        let one = Measured::of(durability, &one, disk_us);
        let many = Measured::of(durability, &many, disk_us);
        single = one.bridge_us();
        if single >= promised {
            problems.push(format!(
                "try {number}: an event takes {single} µs at the median, {promised} were promised ({one})"
            ));
        }
        let (slow, most) = (many.bridge_us(), (2 * single).max(MOST_OF_MANY));
        if slow > most {
            problems
                .push(format!("try {number}: one of {MANY} programs is told {slow} µs late, and not {most} ({many})"));
        }
        outcome.measured.extend([one, many]);
        if problems.is_empty() {
            break;
        }
    }
    outcome.problems.extend(problems);
    Ok(single)
}

/// How long the disk takes for what a commit waits for: some bytes appended, then fdatasync.
fn syncs(scratch: &Path) -> anyhow::Result<Vec<u64>> {
    let mut file = tempfile::tempfile_in(scratch)?;
    let mut sync = || -> std::io::Result<u64> {
        // As far apart as events are: a disk that is asked all the time answers sooner than one that has to wake up.
        std::thread::sleep(Duration::from_millis(PAUSE_MS));
        let began = Instant::now();
        file.write_all(&[0x5a; SYNC_BYTES])?;
        file.sync_data()?;
        Ok(u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX))
    };
    (0..SYNCS).map(|_| Ok(sync()?)).collect()
}

/// Lets so many programs speak at once, each to a caller of its own.
fn listen(server: &Server, programs: usize) -> anyhow::Result<Vec<Delays>> {
    std::thread::scope(|scope| {
        let callers: Vec<_> = (0..programs).map(|_| scope.spawn(|| listen_to_one(server))).collect();
        let joined = callers.into_iter().map(|caller| caller.join().map_err(|_| anyhow::anyhow!("a caller panicked")));
        joined.map(|delays| delays?).collect()
    })
}

fn listen_to_one(server: &Server) -> anyhow::Result<Delays> {
    let mut connection = Connection::open(server.address)?;
    // Read first and understood later: only the arrival is to be measured.
    let mut frames = Vec::with_capacity(2 * EVENTS);
    let message = format!("listen-{}-{:?}", speaker::now(), std::thread::current().id());
    let send = Send::text("/a2a/speaker", &message, "Speak.");
    let refusal = send.stream(&mut connection, |frame| frames.push((speaker::now(), frame.data)))?;
    anyhow::ensure!(refusal.is_none(), "refused: {refusal:?}");
    let mut delays = Vec::with_capacity(EVENTS);
    for (arrived, data) in &frames {
        let frame: Value = serde_json::from_str(data)?;
        let artifact = &frame["result"]["artifactUpdate"]["artifact"];
        let parts = artifact["parts"].as_array().into_iter().flatten();
        let texts = parts.filter_map(|part| part["text"].as_str()).flat_map(|text| text.split(';'));
        let written = texts.filter_map(|text| text.trim().parse::<u64>().ok());
        delays.extend(written.map(|written| arrived.saturating_sub(written)));
    }
    anyhow::ensure!(delays.len() == EVENTS, "{} of {EVENTS} events arrived: {:?}", delays.len(), frames.last());
    delays.sort_unstable();
    Ok(Delays(delays))
}
