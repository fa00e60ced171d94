//! What a caller may see of the feed: what it owns, and with a role what belongs to the agents that its key may call.

use switchboard_engine::store::TaskIdentity;
use switchboard_engine::store::feed::JournalLine;
use switchboard_engine::{AgentName, AgentScope, Caller, CallerRole};

use crate::projector::ROW_PASSED;

/// What a caller may see.
#[derive(Clone, Debug)]
pub(crate) struct View {
    caller: Caller,
}

impl View {
    pub(crate) fn of(caller: &Caller) -> Self {
        Self { caller: caller.clone() }
    }

    /// Whether it sees the work of other callers.
    pub(crate) fn has_role(&self) -> bool {
        self.caller.scopes.role >= CallerRole::Viewer
    }

    pub(crate) fn caller(&self) -> &Caller {
        &self.caller
    }

    pub(crate) fn sees_task(&self, task: &TaskIdentity) -> bool {
        if task.owner == self.caller.id {
            return is_own(&task.agent) || self.caller.scopes.agents.allows(&task.agent);
        }
        self.has_role() && self.sees_agent(&task.agent)
    }

    /// Whether its role, if it has one, shows an agent's work. Agents of the hub itself carry out what callers of all agents
    /// wrote.
    pub(crate) fn sees_agent(&self, agent: &AgentName) -> bool {
        match &self.caller.scopes.agents {
            AgentScope::All => true,
            scope => !is_own(agent) && scope.allows(agent),
        }
    }

    /// A journal line that names no agent is about the server, so a key for some agents does not see it.
    pub(crate) fn sees_line(&self, line: &JournalLine, agent: Option<&str>) -> bool {
        if is_for_administrators(&line.topic) {
            return self.caller.scopes.role >= CallerRole::Admin && self.caller.scopes.agents == AgentScope::All;
        }
        if line.owner.as_ref() == Some(&self.caller.id) {
            return true;
        }
        let is_shown = match agent {
            Some(agent) => self.sees_agent(&AgentName::from(agent)),
            None => self.caller.scopes.agents == AgentScope::All,
        };
        self.has_role() && is_shown
    }
}

/// Whether lines of a topic repeat addresses and headers of remote agents, or what a file says, which `/api/agents` shows to
/// administrators only; or say of the server itself that something in it is wrong.
fn is_for_administrators(topic: &str) -> bool {
    topic.starts_with("audit.agents.") || topic == "hub.config.refused" || topic == ROW_PASSED
}

/// Whether an agent is the hub's own.
pub(crate) fn is_own(agent: &AgentName) -> bool {
    agent.is_own()
}
