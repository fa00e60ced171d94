//! The delay of a program's event: from the moment the program writes it to the moment a client has read it off the wire.
//!
//! What is asserted is a ratio: the delay against the round trip of a small message to the same server in the same
//! minute, which passes through the same HTTP, append and commit. A timer, a poll or Nagle's algorithm on the way of an
//! event makes it tens of round trips, on any machine. Absolute figures are `cargo xtask bench`'s to judge.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context;
use serde_json::Value;

use crate::calls::{Answer, ECHO, Send};
use crate::compare::Problems;
use crate::delays::Delays;
use crate::http::Connection;
use crate::programs::timestamps;
use crate::server::{ANY_PORT, Server, ServerSetup, folder, tail};

/// How many programs speak at once, when it is many.
const MANY: usize = 8;
/// How many events each of them tells, and how many milliseconds apart.
const EVENTS: usize = 200;
const PAUSE_MS: u64 = 5;
/// How many messages each caller sends before the programs speak, and again after it.
const ROUND_TRIPS: usize = 50;
/// An event may take so many round trips of a message at the median. Seen: 0.4 to 0.8.
const MOST_ROUND_TRIPS: u64 = 10;
/// Other things run on this machine. A delay that is in the code is there at every try.
const TRIES: usize = 6;

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
    /// The round trip of a message at the median, with as many callers at once.
    round_trip_us: u64,
    /// What one commit waits for the disk at the median, of `full` alone.
    disk_us: u64,
}

impl Measured {
    fn of(durability: &'static str, all: &[Delays], round_trips: &[Delays], disk_us: u64) -> Self {
        let (together, round_trips) = (Delays::all(all), Delays::all(round_trips));
        Self {
            durability,
            programs: all.len(),
            median_us: together.median(),
            p99_us: together.at(99),
            slowest_median_us: all.iter().map(Delays::median).max().unwrap_or_default(),
            round_trip_us: round_trips.median(),
            disk_us,
        }
    }

    /// Whether the slowest program's events take a delay that messages do not.
    fn problem(&self) -> Option<String> {
        let (slowest, most) = (self.slowest_median_us, self.round_trip_us.saturating_mul(MOST_ROUND_TRIPS));
        (slowest > most)
            .then(|| format!("an event takes {slowest} µs, more than {MOST_ROUND_TRIPS} messages do: {self}"))
    }
}

impl std::fmt::Display for Measured {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { durability, programs, median_us, p99_us, slowest_median_us, round_trip_us, disk_us } = self;
        write!(
            formatter,
            "{durability}, {programs} at once: median {median_us} µs, of the slowest {slowest_median_us} µs, 99 of 100 \
             within {p99_us} µs; a message takes {round_trip_us} µs, the disk's part of a commit is {disk_us} µs"
        )
    }
}

/// Measures with both durabilities, with one program and with many.
pub fn run(binary: &Path) -> anyhow::Result<Outcome> {
    let speaker = std::env::current_exe()?;
    let mut outcome = Outcome::default();
    for durability in ["process", "full"] {
        let scratch = tempfile::tempdir()?;
        let workspace = folder(scratch.path(), "workspace")?;
        std::fs::write(workspace.join("agents.yaml"), agents(&speaker))?;
        let log = scratch.path().join("server.log");
        let setup = ServerSetup { binary: binary.to_owned(), workspace, durability, log, bind: ANY_PORT };
        let server = setup.start()?;
        measure(&server, durability, scratch.path(), &mut outcome)
            .with_context(|| format!("the server's log ends with:\n{}\n", tail(&setup.log)))?;
    }
    Ok(outcome)
}

fn agents(speaker: &PathBuf) -> String {
    format!(
        "agents:\n  - {{ name: echo, builtin: echo }}\n  - {{ name: speaker, cli: generic, command: [{speaker:?}, speak, --count, \"{EVENTS}\", --pause-ms, \
         \"{PAUSE_MS}\"], output: jsonl, repoLock: false, maxParallel: {MANY} }}\n"
    )
}

/// Tries until no event takes longer than it may, or often enough.
fn measure(server: &Server, durability: &'static str, scratch: &Path, outcome: &mut Outcome) -> anyhow::Result<()> {
    // The first of all opens files and fills caches.
    listen(server, 1)?;
    let mut problems = Problems::new();
    for _ in 0..TRIES {
        let disk_us = if durability == "full" { syncs(scratch)?.median() } else { 0 };
        let mut measured = Vec::new();
        for programs in [1, MANY] {
            let before = at_once(programs, || send_and_wait(server))?;
            let delays = listen(server, programs)?;
            let after = at_once(programs, || send_and_wait(server))?;
            measured.push(Measured::of(durability, &delays, &[before, after].concat(), disk_us));
        }
        problems = measured.iter().filter_map(Measured::problem).collect();
        outcome.measured.extend(measured);
        if problems.is_empty() {
            break;
        }
    }
    outcome.problems.extend(problems);
    Ok(())
}

/// How long the disk takes for what a commit waits for: some bytes appended, then fdatasync.
fn syncs(scratch: &Path) -> anyhow::Result<Delays> {
    let mut file = tempfile::tempfile_in(scratch)?;
    let mut sync = || -> std::io::Result<u64> {
        // As far apart as events are: a disk that is asked all the time answers sooner than one that has to wake up.
        std::thread::sleep(Duration::from_millis(PAUSE_MS));
        let began = Instant::now();
        file.write_all(&[0x5a; SYNC_BYTES])?;
        file.sync_data()?;
        Ok(u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX))
    };
    let times = (0..SYNCS).map(|_| Ok(sync()?)).collect::<anyhow::Result<Vec<u64>>>()?;
    Ok(Delays::new(times))
}

/// Lets so many programs speak at once, each to a caller of its own.
fn listen(server: &Server, programs: usize) -> anyhow::Result<Vec<Delays>> {
    at_once(programs, || listen_to_one(server))
}

/// The same measurement by so many callers at once.
fn at_once(callers: usize, measure: impl Fn() -> anyhow::Result<Delays> + Sync) -> anyhow::Result<Vec<Delays>> {
    let measure = &measure;
    std::thread::scope(|scope| {
        let callers: Vec<_> = (0..callers).map(|_| scope.spawn(measure)).collect();
        let joined = callers.into_iter().map(|caller| caller.join().map_err(|_| anyhow::anyhow!("a caller panicked")));
        joined.map(|delays| delays?).collect()
    })
}

/// The round trips of small messages, as far apart as events are.
fn send_and_wait(server: &Server) -> anyhow::Result<Delays> {
    let mut connection = Connection::open(server.address)?;
    let caller = format!("{}-{:?}", timestamps::now(), std::thread::current().id());
    let mut times = Vec::with_capacity(ROUND_TRIPS);
    for number in 0..ROUND_TRIPS {
        std::thread::sleep(Duration::from_millis(PAUSE_MS));
        let send = Send::text(ECHO, &format!("round-trip-{caller}-{number}"), "hello");
        let began = timestamps::now();
        let answer = send.call(&mut connection)?;
        anyhow::ensure!(matches!(answer, Answer::Task(_)), "refused: {answer:?}");
        times.push(timestamps::now().saturating_sub(began));
    }
    Ok(Delays::new(times))
}

fn listen_to_one(server: &Server) -> anyhow::Result<Delays> {
    let mut connection = Connection::open(server.address)?;
    // Read first and understood later: only the arrival is to be measured.
    let mut frames = Vec::with_capacity(2 * EVENTS);
    let message = format!("listen-{}-{:?}", timestamps::now(), std::thread::current().id());
    let send = Send::text("/a2a/speaker", &message, "Speak.");
    let refusal = send.stream(&mut connection, |frame| frames.push((timestamps::now(), frame.data)))?;
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
    Ok(Delays::new(delays))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delay_that_messages_do_not_have_is_a_problem() {
        let round_trips = [Delays::new(vec![900, 1_000, 1_100]), Delays::new(vec![1_000])];
        let judge = |slowest: u64| {
            let delays = [Delays::new(vec![500, 600, 700]), Delays::new(vec![slowest; 3])];
            Measured::of("process", &delays, &round_trips, 0).problem()
        };
        assert_eq!(judge(10_000), None);
        let problem = judge(40_000).unwrap();
        assert!(problem.contains("40000 µs") && problem.contains("a message takes 1000 µs"), "{problem}");
    }
}
