//! kill -9 at random moments under mixed load, again and again on the same data, and a comparison after each.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;

use crate::compare::{self, Problems};
use crate::early_answers::EarlyAnswers;
use crate::journal::Facts;
use crate::load::Load;
use crate::random::Random;
use crate::server::{ANY_PORT, Server, ServerSetup, folder, tail};
use crate::time_box::TimeBox;

/// The load lasts this many milliseconds, chosen anew each round.
const LIFE_MS: std::ops::Range<u64> = 5..400;

/// With the planted bug, the round that waits until all that was acknowledged is true.
const CONTROL: u64 = 0;

/// What to do.
pub struct Plan {
    /// The server's program.
    pub binary: PathBuf,
    /// How many times to kill at most.
    pub rounds: u64,
    /// After so long no more rounds are begun.
    pub time_box: Option<Duration>,
    /// Decides operations and moments.
    pub seed: u64,
    /// Whether answers are given before they are true, which the comparison has to find.
    pub planted: bool,
}

/// What came of it.
#[derive(Default)]
pub struct Outcome {
    /// How many times the server was killed.
    pub rounds: u64,
    /// Acknowledgements compared.
    pub acknowledged: usize,
    /// What did not hold.
    pub problems: Problems,
}

/// Kills and compares; half of the rounds, and half of the time box, with each durability.
pub fn run(plan: &Plan) -> anyhow::Result<Outcome> {
    let scratch = tempfile::tempdir()?;
    let mut outcome = Outcome::default();
    for (durability, rounds) in [("process", plan.rounds.div_ceil(2)), ("full", plan.rounds / 2)] {
        let workspace = folder(scratch.path(), durability)?;
        let setup = ServerSetup {
            binary: plan.binary.clone(),
            log: scratch.path().join(format!("{durability}.log")),
            workspace,
            durability,
            bind: ANY_PORT,
        };
        rounds_on(&setup, plan, rounds, &mut outcome)
            .with_context(|| format!("durability {durability}; the server's log ends with:\n{}\n", tail(&setup.log)))?;
    }
    Ok(outcome)
}

fn rounds_on(setup: &ServerSetup, plan: &Plan, rounds: u64, outcome: &mut Outcome) -> anyhow::Result<()> {
    let mut server = setup.start()?;
    let mut past = Vec::new();
    let time_box = TimeBox::begin(plan.time_box.map(|length| length / 2));
    for round in 0..rounds {
        if round > 0 && time_box.is_over() {
            break;
        }
        let (restarted, facts, problems) = one(server, setup, plan, round, outcome)?;
        server = restarted;
        if plan.planted && round == CONTROL {
            anyhow::ensure!(problems.is_empty(), "found without a crash: {problems:?}");
        }
        let durability = setup.durability;
        outcome.problems.extend(problems.into_iter().map(|problem| format!("{durability}, round {round}: {problem}")));
        // Once lost, always lost: later rounds would only say it again.
        if !outcome.problems.is_empty() {
            return Ok(());
        }
        past.push(facts);
    }
    for facts in &past {
        outcome.problems.extend(compare::endings(server.address, facts)?);
    }
    Ok(())
}

/// One round: load, kill, restart, compare. The restarted server serves the next round.
fn one(
    server: Server,
    setup: &ServerSetup,
    plan: &Plan,
    round: u64,
    outcome: &mut Outcome,
) -> anyhow::Result<(Server, Facts, Problems)> {
    let mut random = Random::new(plan.seed).fork(round);
    let proxy = if plan.planted { Some(EarlyAnswers::start(server.address)?) } else { None };
    let address = proxy.as_ref().map_or(server.address, |proxy| proxy.address);
    let life = Duration::from_millis(random.between(LIFE_MS.start, LIFE_MS.end));
    let load = Load::start(address, round, &random);
    // Not waiting for anything: this is the random moment.
    std::thread::sleep(life);
    let journal = match &proxy {
        // To be accused is the crash, not the proxy: given time, what it said becomes true.
        Some(proxy) if round == CONTROL => {
            load.stop();
            let journal = load.join();
            proxy.catch_up();
            server.kill()?;
            journal
        }
        _ => {
            load.expect_the_end();
            server.kill()?;
            load.join()
        }
    };
    drop(proxy);
    let server = setup.start().context("no restart after the kill")?;
    let facts = journal.facts();
    let mut problems = journal.problems();
    problems.extend(compare::compare(server.address, &facts)?);
    if let Some(said) = setup.check()? {
        problems.push(format!("switchboard db check: {said}"));
    }
    outcome.acknowledged += journal.len();
    outcome.rounds += 1;
    Ok((server, facts, problems))
}
