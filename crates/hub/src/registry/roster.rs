//! The roster: a snapshot of all agents. It never changes; a change of agents is a new roster, so that the hot path takes
//! one read lock and a request sees one state of the fleet.

use std::collections::HashMap;
use std::sync::Arc;

use switchboard_engine::{AgentName, CallerId, FixedDirectory, Hosted};
use switchboard_fleet::config::agents::{Entry, Kind};
use switchboard_host::config::Problem;
use switchboard_host::config::problem::Origin;

use super::remote_state::RemoteState;
use super::skills::problems_of;

/// All agents at one time.
pub struct Roster {
    /// In the order of the files, then registrations by name.
    pub entries: Vec<Arc<RosterEntry>>,
    /// Where each of them is: routing looks for every agent.
    by_name: HashMap<AgentName, usize>,
    /// Removed or not served any more, with tasks that have not ended: found by their tasks only.
    pub(super) draining: Vec<Draining>,
    /// Finds those that are served.
    pub(super) directory: FixedDirectory,
    /// What is wrong with files and registrations whose agents stay as they were.
    pub problems: Vec<RosterProblem>,
}

/// An agent that is removed or replaced, while tasks or jobs name it.
#[derive(Clone)]
pub(super) struct Draining {
    pub(super) name: AgentName,
    /// Its address answers for its tasks. One that was never served here may have some of an earlier process, or none.
    pub(super) was_served: bool,
    /// Absent if it was called by commands only.
    pub(super) hosted: Option<Arc<Hosted>>,
    /// Of an agent elsewhere.
    pub(super) remote: Option<Arc<RemoteState>>,
}

/// What is wrong with a file, or with one agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RosterProblem {
    pub agent: Option<AgentName>,
    pub file: Option<Arc<str>>,
    pub text: String,
}

/// One agent.
#[derive(Clone)]
pub struct RosterEntry {
    pub name: AgentName,
    pub definition: Entry,
    pub source: EntrySource,
    /// A registration of the same name has no effect while this file has it.
    pub shadows_registration: bool,
    /// Absent for an agent that is called by commands only.
    pub hosted: Option<Arc<Hosted>>,
    /// Of an agent elsewhere.
    pub remote: Option<Arc<RemoteState>>,
}

/// Where an agent comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntrySource {
    File,
    Registration { version: u64, owner: CallerId },
}

impl Roster {
    pub(super) fn new(
        entries: Vec<Arc<RosterEntry>>,
        draining: Vec<Draining>,
        own: &[Arc<Hosted>],
        default_agent: Option<AgentName>,
        problems: Vec<RosterProblem>,
    ) -> Self {
        let served = entries.iter().filter_map(|entry| entry.hosted.clone()).chain(own.iter().cloned()).collect();
        let by_name = entries.iter().enumerate().map(|(index, entry)| (entry.name.clone(), index)).collect();
        Self { entries, by_name, draining, directory: FixedDirectory::shared(served, default_agent), problems }
    }

    /// The agent of a name.
    pub fn entry(&self, name: &str) -> Option<&Arc<RosterEntry>> {
        self.entries.get(*self.by_name.get(&AgentName::from(name))?)
    }

    /// What is known of an agent elsewhere, also of one that is removed while tasks or jobs name it.
    pub fn remote(&self, name: &AgentName) -> Option<&Arc<RemoteState>> {
        let draining = || self.draining.iter().find(|draining| draining.name == *name)?.remote.as_ref();
        self.entry(name.as_str()).and_then(|entry| entry.remote.as_ref()).or_else(draining)
    }

    /// The names of all of these.
    pub fn remotes(&self) -> Vec<AgentName> {
        let entries = self.entries.iter().filter(|entry| entry.remote.is_some()).map(|entry| &entry.name);
        let draining = self.draining.iter().filter(|draining| draining.remote.is_some()).map(|draining| &draining.name);
        let mut names: Vec<AgentName> = entries.chain(draining).cloned().collect();
        names.sort();
        names.dedup();
        names
    }
}

impl RosterEntry {
    /// What is wrong with it, with its file, with its card or with its secret.
    pub fn problems(&self, roster: &Roster) -> Vec<String> {
        let file = match self.definition.origin() {
            Origin::File { file, .. } if self.source == EntrySource::File => Some(file),
            _ => None,
        };
        let is_of = |problem: &&RosterProblem| {
            problem.agent.as_ref() == Some(&self.name) || (file.is_some() && problem.file.as_ref() == file)
        };
        let mut problems: Vec<String> =
            roster.problems.iter().filter(is_of).map(|problem| problem.text.clone()).collect();
        if let Some(known) = self.remote.as_ref().and_then(|remote| remote.observed.lock().card.clone()) {
            problems.extend(problems_of(&known.card));
        }
        problems.extend(self.policy_problems());
        if let Some(Err(error)) = self.remote.as_ref().map(|remote| remote.client.peer().credentials.check()) {
            problems.push(format!("it cannot be called, and its tasks wait: {error}"));
        }
        problems
    }

    /// Its kind, in responses.
    pub fn kind(&self) -> &'static str {
        match &self.definition {
            Entry::Remote(_) => "url",
            Entry::Hosted(agent) => match agent.kind {
                Kind::Builtin(_) => "builtin",
                Kind::Cli(_) => "cli",
            },
        }
    }
}

impl RosterProblem {
    /// One of a file.
    pub(super) fn of_file(problem: &Problem) -> Self {
        let file = match &problem.origin {
            Origin::File { file, .. } => Some(Arc::clone(file)),
            _ => None,
        };
        Self { agent: None, file, text: problem.to_string() }
    }

    /// One of an agent.
    pub(super) fn of_agent(agent: &AgentName, text: String) -> Self {
        Self { agent: Some(agent.clone()), file: None, text }
    }
}
