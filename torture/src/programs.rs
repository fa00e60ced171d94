//! Hundreds of tasks of command-line agents that end in every way there is, with the server killed in between; then a
//! look at what is left of them, which must be nothing.

pub mod census;
pub mod leaks;
pub mod overhead;
pub mod scenario;
pub mod timestamps;
pub mod workspace;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context;

use crate::calls::Send;
use crate::compare::Problems;
use crate::http::Connection;
use crate::programs::leaks::Level;
use crate::programs::scenario::{Ended, Reach, Scenario};
use crate::programs::workspace::{PATHS, Workspace};
use crate::random::Random;
use crate::server::{Server, tail};
use crate::time_box::TimeBox;

/// How many callers there are. Each has a task with four processes at most, so there are never too many.
const CALLERS: usize = 8;
/// How many times the server is killed.
const KILLS: u64 = 2;
/// After so many tasks of the last server its memory and files are what they should stay.
const WARM_UP: u64 = 50;

/// So many levels are compared at least, whatever the time box.
const LEAST_LEVELS: usize = 2;
/// Memory that has grown may shrink again; what leaks does not. So many rounds more are given to tell the two apart.
const EXTRA_ROUNDS: u64 = 8;
/// Their tasks have numbers that no others have.
const EXTRA_NUMBERS: u64 = 1_000;

/// What to do.
pub struct Plan {
    /// The server's program.
    pub binary: PathBuf,
    /// How many tasks at most, beside those that tell a leak from memory that shrinks again.
    pub tasks: u64,
    /// After so long no more rounds of tasks are begun.
    pub time_box: Option<Duration>,
    /// Decides what they do and what is done to them.
    pub seed: u64,
}

/// What came of it.
#[derive(Default)]
pub struct Outcome {
    /// What was looked at, in words.
    pub checks: Vec<String>,
    /// How many tasks have ended.
    pub tasks: usize,
    /// How they ended.
    pub endings: String,
    /// What did not hold.
    pub problems: Problems,
}

/// Runs all tasks and looks at what is left.
pub fn run(plan: &Plan) -> anyhow::Result<Outcome> {
    let scratch = tempfile::tempdir()?;
    let workspace = Workspace::build(scratch.path(), &plan.binary)?;
    torture(&workspace, plan).with_context(|| format!("the server's log ends with:\n{}\n", tail(&workspace.setup.log)))
}

fn torture(workspace: &Workspace, plan: &Plan) -> anyhow::Result<Outcome> {
    let time_box = TimeBox::begin(plan.time_box);
    let mut random = Random::new(plan.seed);
    let mut scenarios: Vec<Scenario> = (0..plan.tasks).map(|number| Scenario::random(number, &mut random)).collect();
    let (mut outcome, mut endings) = (Outcome::default(), Vec::new());
    let mut server = workspace.setup.start()?;
    // A quarter of the tasks lives through the kills, the rest is for one server.
    let each = plan.tasks / 4 / KILLS;
    for _ in 0..KILLS {
        let some = some(&mut scenarios, each);
        let moment = Some(random.between(each / 4, each));
        server = round(workspace, server, some, moment, &mut endings, &mut outcome)?;
    }
    let mut levels = Vec::new();
    let mut more = EXTRA_ROUNDS;
    let mut number = plan.tasks + EXTRA_NUMBERS;
    while !scenarios.is_empty() || (more > 0 && leaks::has_grown(&levels)) {
        if scenarios.is_empty() {
            more -= 1;
            scenarios = (number..number + WARM_UP).map(|number| Scenario::random(number, &mut random)).collect();
            number += WARM_UP;
        }
        let some = some(&mut scenarios, WARM_UP);
        server = round(workspace, server, some, None, &mut endings, &mut outcome)?;
        // Rounds that tell a leak from memory that shrinks again follow all the same: they are few.
        if time_box.is_over() && levels.len() + 1 >= LEAST_LEVELS {
            scenarios.clear();
        }
        if scenarios.is_empty() {
            leaks::end_all(&server)?;
        }
        leaks::wait_until_quiet(workspace, &server)?;
        levels.push(Level::of(&server));
    }
    leaks::check(workspace, &server, &levels, &mut outcome)?;
    fresh(&server, &mut outcome)?;
    if !server.is_alive() {
        outcome.problems.push("the server has ended by itself".to_owned());
    }
    (outcome.tasks, outcome.endings) = (endings.len(), counted(&endings));
    Ok(outcome)
}

/// Runs some tasks, and kills the server when so many have begun.
fn round(
    workspace: &Workspace,
    mut server: Server,
    scenarios: Vec<Scenario>,
    kill: Option<u64>,
    endings: &mut Vec<Ended>,
    outcome: &mut Outcome,
) -> anyhow::Result<Server> {
    let is_killed = kill.is_some();
    let reach = Reach::new(server.address);
    let (begun, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    let queue = Mutex::new(scenarios.into_iter());
    let results = Mutex::new(Vec::new());
    let caller = || {
        loop {
            let Some(scenario) = queue.lock().unwrap_or_else(PoisonError::into_inner).next() else { break };
            begun.fetch_add(1, Ordering::SeqCst);
            let ended = scenario.run(workspace, &reach);
            results.lock().unwrap_or_else(PoisonError::into_inner).push((scenario, ended));
        }
        is_over.store(true, Ordering::SeqCst);
    };
    server = std::thread::scope(|scope| {
        for _ in 0..CALLERS {
            scope.spawn(caller);
        }
        let Some(kill_after) = kill else { return Ok(server) };
        while begun.load(Ordering::SeqCst) < kill_after && !is_over.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(5));
        }
        server.kill()?;
        let server = workspace.setup.start().context("no restart after the kill")?;
        reach.moved(server.address);
        anyhow::Ok(server)
    })?;
    for (scenario, ended) in results.into_inner().unwrap_or_else(PoisonError::into_inner) {
        match ended {
            Ok(ended) => {
                if !scenario.is_proper(&ended.state, is_killed) {
                    outcome.problems.push(format!("{scenario:?} ended as {}", ended.said));
                }
                endings.push(ended);
            }
            Err(error) => outcome.problems.push(format!("{scenario:?}: {error:#}")),
        }
    }
    Ok(server)
}

fn some(scenarios: &mut Vec<Scenario>, count: u64) -> Vec<Scenario> {
    let count = usize::try_from(count).unwrap_or(usize::MAX).min(scenarios.len());
    scenarios.drain(..count).collect()
}

/// A new task in each repository completes, and no lock that was left behind holds it up: the events of a task that waits
/// for its repository say so.
fn fresh(server: &Server, outcome: &mut Outcome) -> anyhow::Result<()> {
    let mut connection = Connection::open(server.address)?;
    for path in PATHS {
        let mut events = Vec::new();
        let send = Send::text(path, &format!("fresh-{path}"), "for=0.050; changes");
        let refusal = send.stream(&mut connection, |frame| events.push(frame.data))?;
        let is_completed = events.last().is_some_and(|event| event.contains("TASK_STATE_COMPLETED"));
        let waited = events.iter().find(|event| event.contains("Waiting: agent"));
        if refusal.is_some() || !is_completed || waited.is_some() {
            let last = events.last();
            outcome.problems.push(format!("a new task of {path}: {refusal:?}, waited {waited:?}, ended {last:?}"));
        }
    }
    outcome.checks.push("a new task in each repository waited for none".to_owned());
    Ok(())
}

fn counted(endings: &[Ended]) -> String {
    let mut counts = BTreeMap::<&str, usize>::new();
    for ended in endings {
        *counts.entry(ended.state.trim_start_matches("TASK_STATE_")).or_default() += 1;
    }
    let counts: Vec<String> = counts.into_iter().map(|(state, count)| format!("{count} {state}")).collect();
    counts.join(", ").to_lowercase()
}
