//! How long an event of a program takes to its caller: from the moment the program writes it to the moment a client
//! has read it off the wire.

use std::path::{Path, PathBuf};

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
const TRIES: usize = 3;

/// What was measured.
#[derive(Default)]
pub struct Outcome {
    /// In words.
    pub measured: Vec<String>,
    /// What did not hold.
    pub problems: Problems,
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

/// Measures with both durabilities, and holds the usual one to the promise.
pub fn run(binary: &Path) -> anyhow::Result<Outcome> {
    let speaker = std::env::current_exe()?;
    let mut outcome = Outcome::default();
    for durability in ["process", "full"] {
        let scratch = tempfile::tempdir()?;
        let workspace = folder(scratch.path(), "workspace")?;
        std::fs::write(workspace.join("agents.yaml"), agents(&speaker))?;
        let log = scratch.path().join("server.log");
        let place = Place { binary: binary.to_owned(), workspace, durability, log };
        let tries = if durability == "process" { TRIES } else { 1 };
        let server = place.start()?;
        measure(&server, durability, tries, &mut outcome)
            .with_context(|| format!("the server's log ends with:\n{}\n", tail(&place.log)))?;
    }
    Ok(outcome)
}

fn agents(speaker: &PathBuf) -> String {
    format!(
        "agents:\n  - {{ name: speaker, cli: generic, command: [{speaker:?}, speak, --count, \"{EVENTS}\", --pause-ms, \
         \"{PAUSE_MS}\"], output: jsonl, repoLock: false, maxParallel: {MANY} }}\n"
    )
}

/// Tries until the promise holds, or often enough. What was measured at the last try is told.
fn measure(server: &Server, durability: &str, tries: usize, outcome: &mut Outcome) -> anyhow::Result<()> {
    // The first of all opens files and fills caches.
    listen(server, 1)?;
    let mut problems = Problems::new();
    for number in 0..tries {
        problems.clear();
        let one = listen(server, 1)?;
        let many = listen(server, MANY)?;
        let single = one.first().map(Delays::median).unwrap_or_default();
        outcome.measured.push(format!("{durability}, 1 program: {}", shown(&one)));
        outcome.measured.push(format!("{durability}, {MANY} programs: {}", shown(&many)));
        if single >= MOST {
            problems.push(format!("try {number}: an event takes {single} µs at the median, {MOST} were promised"));
        }
        let most = (2 * single).max(MOST_OF_MANY);
        for slow in many.iter().map(Delays::median).filter(|median| *median > most) {
            problems.push(format!("try {number}: one of {MANY} programs is told {slow} µs late, and not {most}"));
        }
        if problems.is_empty() {
            break;
        }
    }
    if durability == "process" {
        outcome.problems.extend(problems);
    }
    Ok(())
}

fn shown(all: &[Delays]) -> String {
    let medians: Vec<String> = all.iter().map(|delays| delays.median().to_string()).collect();
    let mut together: Vec<u64> = all.iter().flat_map(|delays| delays.0.iter().copied()).collect();
    together.sort_unstable();
    let together = Delays(together);
    let each = if all.len() > 1 { format!(" (of each: {})", medians.join(", ")) } else { String::new() };
    format!("median {} µs{each}, 99 of 100 within {} µs", together.median(), together.at(99))
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
