//! The policies of the agents of the registry, and their gates: what is served passes here, whether it is new, changed, or
//! only has tasks to end.

use std::collections::BTreeMap;

use switchboard_engine::{Manifest, Served};
use switchboard_fleet::config::agents::{Agent, Entry};
use switchboard_fleet::config::policy::Policy;
use switchboard_host::StartError;
use switchboard_host::config::inbox::Inbox;

use super::Registry;
use super::roster::RosterEntry;
use crate::gate::{ReviewPolicies, gated};

impl Registry {
    /// An agent of this machine, as it is served.
    pub(super) fn serve_hosted(&self, agent: &Agent) -> Result<Served, StartError> {
        let served = switchboard_fleet::served(agent, &self.programs)?;
        let policies = of_manifest(&agent.policy, &served.manifest, &self.parts.config.hub.inbox);
        Ok(gated(&self.parts, served, policies))
    }
}

impl RosterEntry {
    /// How far people take part in its skills; nothing if it is not served.
    pub(crate) fn policies(&self, inbox: &Inbox) -> Option<ReviewPolicies> {
        let hosted = self.hosted.as_ref()?;
        match (&self.definition, &self.remote) {
            (_, Some(remote)) => Some(remote.policies(inbox)),
            (Entry::Hosted(agent), None) => Some(of_manifest(&agent.policy, &hosted.served().manifest, inbox)),
            (Entry::Remote(_), None) => None,
        }
    }
}

impl RosterEntry {
    /// What its policy says of skills that it does not have: those that were meant begin without a person.
    pub(super) fn policy_problems(&self) -> Vec<String> {
        let (Entry::Hosted(agent), Some(hosted)) = (&self.definition, &self.hosted) else { return Vec::new() };
        let served = hosted.served();
        let has = |name: &String| served.manifest.skills.iter().any(|skill| skill.id == *name);
        let unknown = agent.policy.skills.keys().filter(|name| !has(name));
        unknown.map(|name| format!("policy.skills.{name}: it has no such skill, so nothing is gated by this")).collect()
    }
}

/// What a policy says of the skills of an agent.
fn of_manifest(policy: &Policy, manifest: &Manifest, inbox: &Inbox) -> ReviewPolicies {
    let skills = manifest.skills.iter().map(|skill| skill.id.as_str());
    ReviewPolicies::new(policy, skills, &BTreeMap::new(), inbox)
}
