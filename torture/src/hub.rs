//! A hub and the servers whose agents it serves, all of them killed at random moments under load.
//!
//! Each is started again where it was. Afterwards every task that the hub acknowledged must be there and have come to the
//! end that the agent has, no message may have been worked on twice, and no agent may still work for a task that has ended.
//! Of three agents one recognises repetitions, one does not, and one cannot even be asked for its tasks. With a server of
//! another SDK, which keeps its tasks in memory, the hub's must end and say why.

mod client;
mod ends;
mod foreign;
mod forgotten;
mod judge;
mod node;
mod tally;
mod unkeyed;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;

use crate::compare::Problems;
use crate::hub::client::{Agent, BEHAVIOURS, Load, PROBE};
use crate::hub::judge::Remote;
use crate::hub::node::{Node, log};
use crate::hub::unkeyed::{Limits, Unkeyed};
use crate::random::Random;
use crate::server::tail;
use crate::time_box::TimeBox;

pub use crate::hub::foreign::Foreign;
pub use crate::hub::forgotten::Check;
pub use crate::hub::tally::Tally;

/// What the hub calls the agents elsewhere, whether they recognise repetitions, and whether they list their tasks.
const REMOTES: [(&str, bool, bool); 3] = [("left", true, true), ("right", false, true), ("silent", false, false)];

/// How long the load lasts before a kill and after the restart, in milliseconds.
const LIFE_MS: std::ops::Range<u64> = 50..600;
/// The same with the planted bug: a message has to be sent again between two kills.
const PLANTED_LIFE_MS: std::ops::Range<u64> = 500..1_000;

/// Times that are minutes in earnest, since the servers are never away for long here.
const TIMES: &str =
    "hub:\n  breaker: { open: 1s }\n  probe: { whileDown: 1s }\n  remotePoll: { first: 1s, most: 2s }\n";

/// A task may be lost in as many kills of the hub as there are: none of them may end it.
const RECOVERIES: &str = "tasks: { maxRecoveries: 1000000 }\n";

/// Lets a server push to the hub.
const LOCAL_WEBHOOKS: &str = "webhooks: { allowedCidrs: [127.0.0.0/8] }\n";

/// What to do.
pub struct Plan {
    /// The server's program.
    pub binary: PathBuf,
    /// How many times to kill at most.
    pub rounds: u64,
    /// After so long no more rounds are begun.
    pub time_box: Option<Duration>,
    /// Decides operations, moments and which server is killed.
    pub seed: u64,
    /// Whether the hub may send a message again to an agent that does not recognise it, which the judge has to find.
    pub planted: bool,
}

/// What came of it.
#[derive(Default)]
pub struct Outcome {
    /// How many times servers were killed.
    pub rounds: u64,
    /// Tasks of the hub, by how they have ended.
    pub tally: Tally,
    /// What was looked at one by one, with a server of another SDK.
    pub checks: Vec<Check>,
    /// What did not hold.
    pub problems: Problems,
}

/// The hub and the servers behind it; one of them is away for a moment now and then.
struct Servers {
    hub: Node,
    remotes: Vec<Node>,
}

/// Kills, restarts and judges.
pub fn run(plan: &Plan) -> anyhow::Result<Outcome> {
    let scratch = tempfile::tempdir()?;
    let logs: Vec<&str> = REMOTES.iter().map(|(name, ..)| *name).chain(["hub"]).collect();
    let said =
        || logs.iter().map(|name| format!("{name}:\n{}\n", tail(&log(scratch.path(), name)))).collect::<String>();
    durable(plan, scratch.path()).with_context(|| format!("the servers' logs end with:\n{}", said()))
}

/// The same with a server of another SDK behind the hub.
pub fn run_foreign(plan: &Plan, foreign: &Foreign) -> anyhow::Result<Outcome> {
    let scratch = tempfile::tempdir()?;
    forgetful(plan, foreign, scratch.path())
        .with_context(|| format!("the hub's log ends with:\n{}", tail(&log(scratch.path(), "hub"))))
}

fn durable(plan: &Plan, scratch: &Path) -> anyhow::Result<Outcome> {
    let (mut nodes, mut remotes, mut agents, mut proxies) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut entries = String::new();
    for (name, is_keyed, lists_tasks) in REMOTES {
        let node = Node::switchboard(&plan.binary, scratch, name)?;
        node.configure("switchboard.yaml", LOCAL_WEBHOOKS)?;
        let mut reached = node.address;
        let is_to_double = plan.planted && !lists_tasks;
        if !is_keyed {
            let proxy = Unkeyed::start(node.address, Limits { lists_tasks, is_slow: is_to_double })?;
            reached = proxy.address;
            proxies.push(proxy);
        }
        let resend = if is_to_double { "always" } else { "safe" };
        entries.push_str(&format!("  - {{ name: {name}, url: \"http://{reached}/a2a/probe\", resend: {resend} }}\n"));
        let agent = agent(name, PROBE);
        if is_to_double || !plan.planted {
            agents.push(agent);
        }
        remotes.push(Remote { name, path: agent.path, address: node.address, is_keyed, lists_tasks });
        nodes.push(node);
    }
    let mut servers = Servers::start(plan, scratch, nodes, &entries)?;
    let (mut outcome, load) = servers.torture(plan, &agents)?;
    let mut journal = load.join();
    outcome.problems.append(&mut journal.problems);
    let verdict = judge::judge(servers.hub.address, &remotes, &journal)?;
    outcome.tally = verdict.tally;
    outcome.problems.extend(verdict.problems);
    servers.check(&mut outcome.problems)?;
    Ok(outcome)
}

fn forgetful(plan: &Plan, foreign: &Foreign, scratch: &Path) -> anyhow::Result<Outcome> {
    // Of an earlier run.
    let _ = std::fs::remove_file(&foreign.executions);
    let node = Node::foreign(foreign.clone())?;
    let (mut entries, mut agents) = (String::new(), Vec::new());
    for interface in &foreign.interfaces {
        let (name, address) = (interface.replace('.', "-"), node.address);
        entries.push_str(&format!("  - {{ name: {name}, url: \"http://{address}/only/{interface}\" }}\n"));
        agents.push(agent(&name, BEHAVIOURS));
    }
    let mut servers = Servers::start(plan, scratch, vec![node], &entries)?;
    let (mut outcome, load) = servers.torture(plan, &agents)?;
    let server = forgotten::Server { foreign, node: &mut servers.remotes[0], agents: &agents };
    let forgotten = forgotten::judge(servers.hub.address, server, load)?;
    (outcome.tally, outcome.checks) = (forgotten.tally, forgotten.checks);
    outcome.problems.extend(forgotten.problems);
    servers.check(&mut outcome.problems)?;
    Ok(outcome)
}

/// An agent that the hub serves. There are a few of them in a run.
fn agent(name: &str, words: client::Words) -> Agent {
    Agent { path: format!("/a2a/{name}").leak(), words }
}

impl Servers {
    fn start(plan: &Plan, scratch: &Path, remotes: Vec<Node>, entries: &str) -> anyhow::Result<Self> {
        let hub = Node::switchboard(&plan.binary, scratch, "hub")?;
        hub.configure("agents.yaml", &format!("agents:\n{entries}"))?;
        // Agents push to it, so it has to say where it is.
        let address = format!("server: {{ publicBaseUrl: \"http://{}\" }}\n", hub.address);
        hub.configure("switchboard.yaml", &format!("{address}{LOCAL_WEBHOOKS}{TIMES}{RECOVERIES}"))?;
        let mut servers = Self { hub, remotes };
        for node in servers.remotes.iter_mut().chain([&mut servers.hub]) {
            node.start()?;
        }
        Ok(servers)
    }

    /// All rounds, and the load, which was told to end.
    fn torture(&mut self, plan: &Plan, agents: &[Agent]) -> anyhow::Result<(Outcome, Load)> {
        let mut random = Random::new(plan.seed);
        let mut outcome = Outcome::default();
        let load = Load::start(self.hub.address, agents, &random);
        let time_box = TimeBox::begin(plan.time_box);
        while outcome.rounds < plan.rounds && !time_box.is_over() {
            // Not waiting for anything: this is the random moment.
            let life = if plan.planted { PLANTED_LIFE_MS } else { LIFE_MS };
            std::thread::sleep(Duration::from_millis(random.between(life.start, life.end)));
            self.strike(&mut random, plan.planted)?;
            outcome.rounds += 1;
        }
        load.end();
        Ok((outcome, load))
    }

    /// Kills one of them, two, or all; what none of them has on its disk never happened.
    fn strike(&mut self, random: &mut Random, only_hub: bool) -> anyhow::Result<()> {
        let remotes = self.remotes.len();
        let one = usize::try_from(random.between(0, remotes as u64)).unwrap_or_default();
        let (kills_hub, killed) = match random.between(0, 8) {
            _ if only_hub => (true, 0..0),
            0..3 => (false, one..one + 1),
            3..5 => (true, 0..0),
            5..7 => (true, one..one + 1),
            _ => (true, 0..remotes),
        };
        let is_hub_first = random.between(0, 2) == 0;
        let mut struck: Vec<&mut Node> = self.remotes[killed].iter_mut().collect();
        if kills_hub {
            struck.push(&mut self.hub);
        }
        for node in &mut struck {
            node.kill()?;
        }
        if is_hub_first {
            struck.reverse();
        }
        struck.into_iter().try_for_each(Node::start)
    }

    /// Whether the stores of those that have one are whole.
    fn check(&mut self, problems: &mut Problems) -> anyhow::Result<()> {
        for node in self.remotes.iter_mut().chain([&mut self.hub]) {
            node.kill()?;
            problems.extend(node.check()?);
        }
        Ok(())
    }
}

impl Outcome {
    /// Tasks of the hub.
    #[must_use]
    pub fn tasks(&self) -> usize {
        self.tally.total()
    }
}
