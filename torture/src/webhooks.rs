//! kill -9 under load while webhooks are delivered to receivers that cannot be relied on; afterwards every webhook must
//! have been told everything that was committed, in order, and nothing else.

mod client;
pub mod compare;
pub mod expected;
pub mod judge;
pub mod log;
pub mod receiver;
mod request;

use std::fmt::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::Context;
use serde_json::{Value, json};

use crate::calls::{self, ECHO};
use crate::compare::Problems;
use crate::http::Connection;
use crate::random::Random;
use crate::server::{ANY_PORT, ServerSetup, folder, tail};
use crate::time_box::TimeBox;
use crate::webhooks::client::{Client, Round};
use crate::webhooks::compare::Count;
use crate::webhooks::expected::Expected;
use crate::webhooks::receiver::{Conduct, Inbox, Receiver, TIMEOUT};

/// How many clients work at the same time.
const CLIENTS: u64 = 8;
/// How many endpoints there are.
const RECEIVERS: u64 = 3;
/// The load lasts this many milliseconds, chosen anew each round.
const LIFE_MS: std::ops::Range<u64> = 150..900;
/// So many times a round, receivers go down or come back.
const CHANGES: u32 = 5;
/// So many rounds are needed, whatever the time box, for receivers to do everything they can.
const LEAST_ROUNDS: u64 = 4;
/// The last round goes on until all tasks are there, but not for ever.
const MOST_CHANGES: u32 = 1_000;

/// What to do.
pub struct Plan {
    /// The server's program.
    pub binary: PathBuf,
    /// How many times to kill at most.
    pub rounds: u64,
    /// How many tasks with webhooks in all, if all rounds are done; of fewer rounds each has as many.
    pub tasks: usize,
    /// After so long the next round is the last.
    pub time_box: Option<Duration>,
    /// Decides operations, moments and what receivers do.
    pub seed: u64,
}

/// What came of it.
pub struct Outcome {
    /// How many times the server was killed.
    pub rounds: u64,
    /// How much was compared.
    pub count: Count,
    /// What the receivers did, in words.
    pub conducts: String,
    /// What did not hold.
    pub problems: Problems,
}

/// Kills, lets everything be delivered, and compares.
pub fn run(plan: &Plan) -> anyhow::Result<Outcome> {
    let scratch = tempfile::tempdir()?;
    let workspace = folder(scratch.path(), "webhooks")?;
    std::fs::write(workspace.join("switchboard.yaml"), configuration())?;
    let log = scratch.path().join("webhooks.log");
    let setup =
        ServerSetup { binary: plan.binary.clone(), workspace, durability: "process", log: log.clone(), bind: ANY_PORT };
    run_on(&setup, plan).with_context(|| format!("the server's log ends with:\n{}\n", tail(&log)))
}

/// Short waits, so that what takes a day outside takes a second here; the most attempts, so that nothing is given up.
fn configuration() -> String {
    let retries = vec!["100ms"; 60].join(", ");
    format!(
        "webhooks:\n  allowedCidrs: [127.0.0.0/8]\n  timeout: {}ms\n  retries: [{retries}]\n  pauseAfter: 5\n  \
         pause: 100ms\n  maxPause: 400ms\n\
         limits: {{ runningTasks: 10000, runningPerCaller: 10000, runningPerAgent: 10000 }}\n",
        TIMEOUT.as_millis()
    )
}

fn run_on(setup: &ServerSetup, plan: &Plan) -> anyhow::Result<Outcome> {
    let random = Random::new(plan.seed);
    let inbox = Arc::<Inbox>::default();
    let start = |number| Receiver::start(Arc::clone(&inbox), random.fork(1_000_000 + number));
    let receivers = (0..RECEIVERS).map(start).collect::<std::io::Result<Vec<_>>>()?;
    let expected = Arc::<Expected>::default();
    let time_box = TimeBox::begin(plan.time_box);
    let (mut rounds, mut share) = (0, 0);
    for round in 0..plan.rounds {
        rounds = round + 1;
        share = plan.tasks * usize::try_from(rounds)? / usize::try_from(plan.rounds)?;
        expected.allow(share);
        let durability = if round % 2 == 0 { "process" } else { "full" };
        let setup = ServerSetup { durability, ..setup.clone() };
        let is_last = rounds == plan.rounds || (rounds >= LEAST_ROUNDS && time_box.is_over());
        one(&setup, round, random.fork(round), &receivers, &expected, is_last)
            .with_context(|| format!("round {round}"))?;
        if is_last {
            break;
        }
    }
    let server = setup.start().context("no restart after the last kill")?;
    let pages = expected.pages();
    let mut problems = expected.problems();
    problems.extend(inbox.problems());
    problems.extend(compare::end_all(server.address, &pages)?);
    problems.extend(compare::drained(server.address)?);
    let (count, found) = compare::compare(server.address, &pages, &inbox.hooks())?;
    problems.extend(found);
    if let Some(said) = setup.check()? {
        problems.push(format!("switchboard db check: {said}"));
    }
    let (conducts, unseen) = conducts(&inbox);
    problems.extend(unseen);
    if count.tasks < share || count.tally.after_acceptance == 0 {
        problems.push(format!("too little happened for this to mean anything: {count:?}"));
    }
    Ok(Outcome { rounds, count, conducts, problems })
}

/// One round: load while receivers come and go, and the kill.
fn one(
    setup: &ServerSetup,
    number: u64,
    mut random: Random,
    receivers: &[Receiver],
    expected: &Arc<Expected>,
    is_last: bool,
) -> anyhow::Result<()> {
    let server = setup.start().context("no restart after the kill")?;
    let round = Arc::new(Round {
        address: server.address,
        receivers: receivers.iter().map(|receiver| receiver.address).collect(),
        epoch: epoch(&server.address, number)?,
        expected: Arc::clone(expected),
        dying: false.into(),
    });
    let clients: Vec<_> = (0..CLIENTS)
        .map(|client| {
            let client = Client::new(format!("{number}-{client}"), Arc::clone(&round), random.fork(client));
            std::thread::spawn(move || client.run())
        })
        .collect();
    let life = random.between(LIFE_MS.start, LIFE_MS.end);
    for change in 1..=MOST_CHANGES {
        for receiver in receivers {
            receiver.set_down(random.between(0, 4) == 0);
        }
        // Not waiting for anything: these are random moments, and the last of them is the end.
        std::thread::sleep(Duration::from_millis(life / u64::from(CHANGES)));
        if change >= CHANGES && (!is_last || expected.is_full()) {
            break;
        }
    }
    round.dying.store(true, Ordering::SeqCst);
    server.kill()?;
    for client in clients {
        if client.join().is_err() {
            expected.problem("a client panicked".to_owned());
        }
    }
    for receiver in receivers.iter().filter(|_| is_last) {
        receiver.set_down(false);
    }
    Ok(())
}

/// The epoch of a server, which the first frame of any stream tells.
fn epoch(address: &std::net::SocketAddr, round: u64) -> anyhow::Result<String> {
    let message = json!({ "messageId": format!("epoch-{round}"), "role": "ROLE_USER", "parts": [{ "text": "epoch" }] });
    let params: Value = json!({ "message": message });
    let mut first = None;
    let mut connection = Connection::open(*address)?;
    calls::stream(&mut connection, ECHO, "SendStreamingMessage", &params, &[("a2a-version", "1.0")], |frame| {
        first.get_or_insert(frame.id);
        true
    })?;
    let id = first.context("a stream without a frame")?;
    let (epoch, _) = id.split_once('.').with_context(|| format!("the first frame has the id {id:?}"))?;
    Ok(epoch.to_owned())
}

/// What the receivers did in words, and what they should have done and did not.
fn conducts(inbox: &Inbox) -> (String, Problems) {
    let seen = inbox.conducts();
    let mut words = String::new();
    for (conduct, count) in &seen {
        let separator = if words.is_empty() { "" } else { ", " };
        // Writing to a string cannot fail.
        let _ = write!(words, "{separator}{conduct:?} {count}");
    }
    let unseen = Conduct::ALL.iter().filter(|conduct| !seen.contains_key(conduct));
    (words, unseen.map(|conduct| format!("no receiver ever had occasion to {conduct:?}")).collect())
}
