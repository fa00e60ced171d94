//! The roster: a snapshot of all agents. It never changes; a change of agents is a new roster, so that the hot path takes
//! one read lock and a request sees one state of the fleet.

use std::sync::Arc;

use switchboard_engine::{AgentName, CallerId, FixedDirectory, Hosted};
use switchboard_fleet::config::agents::{Entry, Kind};

use super::remote_state::RemoteState;

/// All agents at one time.
pub struct Roster {
    /// In the order of the files, then registrations by name.
    pub entries: Vec<Arc<RosterEntry>>,
    /// Removed or not served any more, with tasks that have not ended: found by their tasks only.
    pub(super) draining: Vec<Arc<Hosted>>,
    /// Finds those that are served.
    pub(super) directory: FixedDirectory,
    /// What is wrong with files and registrations whose agents stay as they were.
    pub problems: Vec<String>,
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
        draining: Vec<Arc<Hosted>>,
        own: &[Arc<Hosted>],
        default_agent: Option<AgentName>,
        problems: Vec<String>,
    ) -> Self {
        let served = entries.iter().filter_map(|entry| entry.hosted.clone()).chain(own.iter().cloned()).collect();
        Self { entries, draining, directory: FixedDirectory::shared(served, default_agent), problems }
    }

    /// The agent of a name.
    pub fn entry(&self, name: &str) -> Option<&Arc<RosterEntry>> {
        self.entries.iter().find(|entry| entry.name.as_str() == name)
    }
}

impl RosterEntry {
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
