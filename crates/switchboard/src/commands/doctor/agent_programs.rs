//! What doctor finds of the agents that start a program, in one line each, for commands that look at agents.

use std::collections::BTreeMap;
use std::io;

use switchboard_fleet::config::agents::{Agent, Kind};
use tokio::task::JoinSet;

use super::agent;
use super::finding::{Finding, Level};
use super::probe_runner::ProbeRunner;

/// Whether an agent can start its program here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ProgramState {
    /// It can.
    Ready,
    /// It may work, and is probably not meant: what is odd, and what to do about it.
    Doubtful(String),
    /// It cannot: why, and what to do about it.
    Unusable(String),
}

/// Looks at the agents that start a program, by name. It fails if no program can be started at all.
pub(crate) async fn look(agents: Vec<Agent>) -> io::Result<BTreeMap<String, ProgramState>> {
    let probes = ProbeRunner::open()?;
    let mut looks = JoinSet::new();
    for agent in agents {
        let Kind::Cli(cli) = agent.kind else { continue };
        let (probes, name) = (probes.clone(), agent.name.to_string());
        looks.spawn(async move { agent::look(&probes, name, &cli).await });
    }
    let mut states = BTreeMap::new();
    while let Some(looked) = looks.join_next().await {
        match looked {
            Ok(report) => drop(states.insert(report.name, state_of(&report.findings))),
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        }
    }
    probes.close().await;
    Ok(states)
}

/// The worst of what was found; the rest is for `switchboard doctor`.
fn state_of(findings: &[Finding]) -> ProgramState {
    let worst = |level: Level| {
        let mut found = findings.iter().filter(|finding| finding.level == level);
        let first = found.next()?;
        let fix = if first.fix.is_empty() { String::new() } else { format!(": {}", first.fix) };
        let more = match found.count() {
            0 => String::new(),
            count => format!(" (and {count} more: switchboard doctor)"),
        };
        Some(format!("{}{fix}{more}", first.text))
    };
    if let Some(problem) = worst(Level::Problem) {
        return ProgramState::Unusable(problem);
    }
    if let Some(warning) = worst(Level::Warning) {
        return ProgramState::Doubtful(warning);
    }
    ProgramState::Ready
}
