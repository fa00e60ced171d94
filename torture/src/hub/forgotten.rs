//! What must be true of the hub when a server behind it has lost all of its tasks: each of the hub's comes to an end that says
//! why, no message was worked on twice, and nothing is worked on for a task that has ended.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use anyhow::Context;

use crate::calls::{Answer, Send};
use crate::compare::Problems;
use crate::http::Connection;
use crate::hub::client::{Agent, Journal, Load};
use crate::hub::ends::{Ended, Ends};
use crate::hub::foreign::Foreign;
use crate::hub::judge::{acknowledged, live, until};
use crate::hub::node::Node;
use crate::hub::tally::Tally;

/// The words of ends that are true where a server has forgotten a task, or was away, or the hub was killed again and again
/// before it heard of it: the agent's own end, or one of these.
const TRUE_REASONS: [&str; 5] = ["remote_lost", "send_unknown", "unavailable", "unreachable", "recovery_limit"];

/// What was looked at, with what does not hold of it.
pub struct Check {
    /// Which interface of the server the hub called.
    pub interface: String,
    /// What was looked at.
    pub name: &'static str,
    /// What does not hold.
    pub problems: Problems,
}

/// What came of it.
pub(super) struct Forgotten {
    pub(super) tally: Tally,
    pub(super) checks: Vec<Check>,
    /// What the clients have seen that must not happen.
    pub(super) problems: Problems,
}

/// The server that has lost its tasks, and how the hub calls it.
pub(super) struct Server<'a> {
    pub(super) foreign: &'a Foreign,
    pub(super) node: &'a mut Node,
    pub(super) agents: &'a [Agent],
}

impl Server<'_> {
    /// Kills it and starts it where it was, without its tasks.
    fn restart(&mut self) -> anyhow::Result<()> {
        self.node.kill()?;
        self.node.start()
    }

    fn tasks(&self, connection: &mut Connection) -> std::io::Result<Ends> {
        Ends::read(connection, self.agents.iter().map(|agent| agent.path))
    }

    /// Whether a task of the hub that has not ended is one of its present process, which may never end it.
    fn has_live_task(&self, hub: SocketAddr) -> anyhow::Result<bool> {
        let process = self.node.pid().context("the server should be running")?;
        let tasks = self.tasks(&mut Connection::open(hub)?)?;
        let followed =
            tasks.all().iter().filter(|here| !here.facts.is_terminal()).filter_map(|here| here.remote.as_ref());
        let executions = self.foreign.executions()?;
        Ok(followed.into_iter().any(|remote| executions.all.contains(&(process, remote.task.clone()))))
    }
}

/// The load was told to end, and ends in here: a client waits for its task, which may never end while the server lives.
pub(super) fn judge(hub: SocketAddr, mut server: Server<'_>, load: Load) -> anyhow::Result<Forgotten> {
    let mut by_check: BTreeMap<&'static str, BTreeMap<usize, Problems>> = BTreeMap::new();
    let mut add = |check, agent: usize, problems: Problems| by_check.entry(check).or_default().insert(agent, problems);
    let stopped = until_only_live_tasks_run(hub, &server)?;

    // This kill takes what clients wait for, and the last one what they have left: nobody ends those but the hub.
    server.restart()?;
    let Journal { tasks: told, problems, .. } = load.join();
    server.restart()?;
    until_all_have_ended(hub, &mut server)?;
    let mut connection = Connection::open(hub)?;
    let here = server.tasks(&mut connection)?;
    let executions = server.foreign.executions()?;
    for (number, agent) in server.agents.iter().enumerate() {
        let told = told.iter().filter(|(_, told)| told.path == agent.path);
        let told = told.map(|(id, told)| (id.clone(), told.clone())).collect();
        let mut lost = Problems::new();
        acknowledged(&mut connection, &Journal { tasks: told, ..Journal::default() }, &mut lost)?;
        add("no-task-lost", number, lost);
        // Those too that nobody was told of.
        let mine = || here.all().iter().filter(|here| here.agent == agent.path);
        let endless = mine().filter(|here| !here.facts.is_terminal()).map(|here| format!("{here:?} does not end"));
        add("all-ended", number, endless.chain(mine().filter_map(untrue)).collect());
        let twice = executions.begun.iter().filter(|(_, count)| **count > 1);
        add(
            "nothing-twice",
            number,
            twice.map(|(message, count)| format!("message {message} was worked on {count} times")).collect(),
        );
        add("nothing-orphaned", number, stopped.clone());
        add("goes-on", number, goes_on(&mut connection, *agent)?);
    }
    let mut checks = Vec::new();
    for (name, by_agent) in by_check {
        for (interface, (_, problems)) in server.foreign.interfaces.iter().zip(by_agent) {
            checks.push(Check { interface: interface.clone(), name, problems });
        }
    }
    Ok(Forgotten { tally: here.tally(), checks, problems })
}

/// The server is killed for as long as the hub's tasks do not end: a message that did not arrive before a kill is sent to the
/// next process, and the work on it is lost by the next kill.
fn until_all_have_ended(hub: SocketAddr, server: &mut Server<'_>) -> anyhow::Result<bool> {
    until(|| {
        if live(&mut Connection::open(hub)?)?.is_empty() {
            return Ok(true);
        }
        if server.has_live_task(hub).map_err(std::io::Error::other)? {
            server.restart().map_err(std::io::Error::other)?;
        }
        Ok(false)
    })
}

/// An agent may work for tasks that the hub still follows. Where the hub could not find out what became of a message, it has
/// said so, and the agent may work on that one too.
fn until_only_live_tasks_run(hub: SocketAddr, server: &Server<'_>) -> anyhow::Result<Problems> {
    let process = server.node.pid().context("the server should be running")?;
    let mut problems = Problems::new();
    until(|| {
        let here = server.tasks(&mut Connection::open(hub)?)?;
        let executions = server.foreign.executions().map_err(std::io::Error::other)?;
        let running = executions.running.iter().filter(|(running, _)| *running == process);
        let (mut orphans, mut unknown) = (Vec::new(), 0);
        for (_, task) in running {
            let owner = here.all().iter().find(|here| here.remote.as_ref().is_some_and(|remote| remote.task == *task));
            match owner {
                Some(owner) if owner.facts.is_terminal() => orphans.push((task, owner)),
                Some(_) => {}
                None => unknown += 1,
            }
        }
        problems = orphans.iter().map(|(task, owner)| format!("{task} is worked on for {owner:?}")).collect();
        let unknown_here = here.all().iter().filter(|here| here.remote.is_none()).count();
        if unknown > unknown_here {
            problems.push(format!("{unknown} tasks are worked on for none of the hub's, where {unknown_here} may be"));
        }
        Ok(problems.is_empty())
    })?;
    Ok(problems)
}

/// An end whose reason is not one of those that there are.
fn untrue(here: &Ended) -> Option<String> {
    let is_own = here.remote.as_ref().is_some_and(|remote| remote.state.is_some());
    let is_failed = here.facts.state == "TASK_STATE_FAILED";
    let is_true = here.detail.as_deref().is_some_and(|detail| TRUE_REASONS.contains(&detail));
    (is_failed && !is_own && !is_true).then(|| format!("{here:?} does not say why it has ended"))
}

/// The server is there again, and so is its agent.
fn goes_on(connection: &mut Connection, agent: Agent) -> anyhow::Result<Problems> {
    let id = format!("after{}", agent.path);
    Ok(match Send::text(agent.path, &id, agent.words.hello).call(connection)? {
        Answer::Task(task) if task.state == "TASK_STATE_COMPLETED" => Problems::new(),
        answer => vec![format!("after all of it a message was answered {answer:?}")],
    })
}
