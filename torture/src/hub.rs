//! A hub and two servers whose agents it serves, all of them killed at random moments under load.
//!
//! Each is started again where it was. Afterwards every task that the hub acknowledged must be there and have come to an
//! end, no message may have been worked on twice, and no agent may still work for a task that has ended.

mod client;
mod judge;

use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;

use crate::compare::Problems;
use crate::hub::client::Load;
use crate::random::Random;
use crate::server::{Server, ServerSetup, folder, tail};
use crate::time_box::TimeBox;

/// What the hub calls the agents elsewhere.
const REMOTES: [&str; 2] = ["left", "right"];

/// How long the load lasts before a kill and after the restart, in milliseconds.
const LIFE_MS: std::ops::Range<u64> = 50..600;

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
}

/// What came of it.
#[derive(Default)]
pub struct Outcome {
    /// How many times a server was killed.
    pub rounds: u64,
    /// Tasks that the hub acknowledged.
    pub tasks: usize,
    /// Those of them that were completed.
    pub completed: usize,
    /// What did not hold.
    pub problems: Problems,
}

/// The hub and the servers behind it; one of them is away for a moment now and then.
struct Servers {
    hub: Node,
    remotes: Vec<Node>,
}

struct Node {
    setup: ServerSetup,
    server: Option<Server>,
    address: SocketAddr,
}

/// Kills, restarts and judges.
pub fn run(plan: &Plan) -> anyhow::Result<Outcome> {
    let scratch = tempfile::tempdir()?;
    let logs = [REMOTES.as_slice(), &["hub"]].concat();
    let said =
        || logs.iter().map(|name| format!("{name}:\n{}\n", tail(&log(scratch.path(), name)))).collect::<String>();
    rounds(plan, scratch.path()).with_context(|| format!("the servers' logs end with:\n{}", said()))
}

fn rounds(plan: &Plan, scratch: &Path) -> anyhow::Result<Outcome> {
    let mut servers = Servers::start(&plan.binary, scratch)?;
    let mut random = Random::new(plan.seed);
    let mut outcome = Outcome::default();
    let load = Load::start(servers.hub.address, &random);
    let time_box = TimeBox::begin(plan.time_box);
    while outcome.rounds < plan.rounds && !time_box.is_over() {
        // Not waiting for anything: this is the random moment.
        std::thread::sleep(Duration::from_millis(random.between(LIFE_MS.start, LIFE_MS.end)));
        match random.between(0, 4) {
            0 => servers.remotes[0].restart()?,
            1 => servers.remotes[1].restart()?,
            2 => servers.hub.restart()?,
            // Both ends at once: what neither has on its disk never happened.
            _ => {
                servers.hub.kill()?;
                servers.remotes[0].kill()?;
                servers.remotes[0].start()?;
                servers.hub.start()?;
            }
        }
        outcome.rounds += 1;
    }
    let journal = load.stop();
    let remotes: Vec<SocketAddr> = servers.remotes.iter().map(|remote| remote.address).collect();
    let verdict = judge::judge(servers.hub.address, &remotes, &journal)?;
    for node in servers.remotes.iter_mut().chain([&mut servers.hub]) {
        node.kill()?;
        if let Some(said) = node.setup.check()? {
            outcome.problems.push(format!("switchboard db check of {}: {said}", node.setup.workspace.display()));
        }
    }
    outcome.tasks = journal.tasks.len();
    outcome.completed = verdict.completed;
    outcome.problems.extend(journal.problems);
    outcome.problems.extend(verdict.problems);
    Ok(outcome)
}

impl Servers {
    fn start(binary: &Path, scratch: &Path) -> anyhow::Result<Self> {
        let mut remotes = Vec::new();
        let mut entries = String::from("agents:\n");
        for name in REMOTES {
            let node = Node::new(binary, scratch, name)?;
            entries.push_str(&format!("  - name: {name}\n    url: http://{}/a2a/probe\n", node.address));
            remotes.push(node);
        }
        let mut hub = Node::new(binary, scratch, "hub")?;
        std::fs::write(hub.setup.workspace.join("agents.yaml"), entries)?;
        for node in remotes.iter_mut().chain([&mut hub]) {
            node.start()?;
        }
        Ok(Self { hub, remotes })
    }
}

impl Node {
    fn new(binary: &Path, scratch: &Path, name: &str) -> anyhow::Result<Self> {
        // It comes back where it was, so its port must be known before; a server that cannot have it says so.
        let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let setup = ServerSetup {
            binary: binary.to_owned(),
            workspace: folder(scratch, name)?,
            durability: "process",
            log: log(scratch, name),
            bind: address,
        };
        Ok(Self { setup, server: None, address })
    }

    fn start(&mut self) -> anyhow::Result<()> {
        self.server = Some(self.setup.start().context("no restart after the kill")?);
        Ok(())
    }

    fn kill(&mut self) -> anyhow::Result<()> {
        self.server.take().map_or(Ok(()), Server::kill)
    }

    fn restart(&mut self) -> anyhow::Result<()> {
        self.kill()?;
        self.start()
    }
}

fn log(scratch: &Path, name: &str) -> PathBuf {
    scratch.join(format!("{name}.log"))
}
