//! Who may see, change and run a ceremony, and what an owner may have done in its name. Runs are sent as the owner, long after
//! the request that has ordered them: whoever changes a ceremony can do no more by it than its owner.

use switchboard_engine::{AgentName, AgentScope, Caller, CallerId, CallerRole};

use super::definition::Definition;
use super::notifier::{Notifier, variable_of_channel};
use super::{Ceremonies, Ceremony, CeremonyError, Source};
use crate::definition_reader::Problem;
use crate::routing::ALL;

/// Times that are looked at for the shortest one between two runs: all that come within a day of one by the minute do.
const LOOKED_AT: usize = 1_500;

impl Ceremony {
    /// Whether a caller sees it: its own, with a role those of agents that its key may call.
    pub(crate) fn is_seen_by(&self, caller: &Caller) -> bool {
        self.owner == caller.id || self.has_role(caller, CallerRole::Viewer)
    }

    /// Whether a caller may act on it by a role.
    pub(crate) fn has_role(&self, caller: &Caller, role: CallerRole) -> bool {
        caller.scopes.role >= role && covers(&caller.scopes.agents, &self.definition)
    }
}

/// Whether a scope has every agent that a ceremony may reach.
fn covers(scope: &AgentScope, definition: &Definition) -> bool {
    let is_covered = |name: &String| name != ALL && scope.covers(&AgentName::from(name.as_str()));
    *scope == AgentScope::All || (!definition.targets.is_empty() && definition.targets.iter().all(is_covered))
}

impl Ceremonies {
    /// Who a ceremony's runs are sent as, as its key is now; none once that is revoked. What the operator's files say is sent
    /// as the operator.
    pub(super) fn owner(&self, ceremony: &Ceremony) -> Option<Caller> {
        match ceremony.source {
            Source::File => Some(Caller::local()),
            Source::Registration { .. } => self.caller(&ceremony.owner),
        }
    }

    pub(super) fn caller(&self, id: &CallerId) -> Option<Caller> {
        if *id == Caller::local().id { Some(Caller::local()) } else { self.parts.callers.find(id) }
    }

    /// Refuses what an owner may not have done.
    pub(super) fn check(&self, owner: &Caller, definition: &Definition) -> Result<(), CeremonyError> {
        let is_admin = owner.scopes.role >= CallerRole::Admin;
        let agents = definition.targets.iter().filter(|name| *name != ALL).map(String::as_str);
        let told = definition.notify.iter().filter_map(|notifier| match notifier {
            Notifier::Agent(agent) => Some(agent.as_str()),
            _ => None,
        });
        let refused = agents.chain(told).find(|name| !owner.scopes.agents.allows(&AgentName::from(*name)));
        if let Some(agent) = refused {
            return Err(CeremonyError::Forbidden(format!(
                "{} may not call agent {agent}: name agents that its key allows",
                owner.id.as_str()
            )));
        }
        if !is_admin && definition.publish.is_some() {
            return Err(CeremonyError::Forbidden("only ceremonies of administrators publish".to_owned()));
        }
        if !is_admin && definition.notify.contains(&Notifier::Stdout) {
            let problem = "only ceremonies of administrators write to the server's standard output";
            return Err(CeremonyError::Forbidden(problem.to_owned()));
        }
        let mut problems = self.unlisted(definition);
        if !is_admin {
            problems.extend(self.too_often(definition));
        }
        if problems.is_empty() { Ok(()) } else { Err(CeremonyError::Invalid(problems)) }
    }

    /// Variables that registrations may not use: what may create a ceremony could otherwise have results sent to an address
    /// that is in any variable of this process.
    fn unlisted(&self, definition: &Definition) -> Vec<Problem> {
        let listed = &self.parts.config.hub.registrations.env;
        let unlisted = |key: String, variable: &str| {
            (!listed.iter().any(|name| name == variable)).then(|| {
                let wrong = format!("is {variable}, which is not a variable that registrations may use");
                Problem::new(key, wrong, "list it in hub.registrations.env, or choose one of that list")
            })
        };
        let mut problems = Vec::new();
        for (index, notifier) in definition.notify.iter().enumerate() {
            for (member, variable) in notifier.variables() {
                problems.extend(unlisted(format!("notify[{index}].{member}"), variable));
            }
        }
        if let Some(channel) = &definition.notify_channel {
            problems.extend(unlisted("notifyChannel".to_owned(), &variable_of_channel(channel)));
        }
        problems
    }

    fn too_often(&self, definition: &Definition) -> Option<Problem> {
        let least = self.parts.config.hub.ceremonies.min_interval;
        let now = self.parts.clock.now();
        let times =
            std::iter::successors(definition.schedule.next_after(now), |at| definition.schedule.next_after(*at));
        let mut before = None;
        for at in times.take(LOOKED_AT) {
            let is_too_soon = |before: switchboard_a2a::Timestamp| {
                u128::try_from(at.0 - before.0).is_ok_and(|gap| gap < least.duration().as_millis())
            };
            if before.is_some_and(is_too_soon) {
                let right = format!("at least {least} between two runs (hub.ceremonies.minInterval)");
                return Some(Problem::new("schedule", "is due more often than it may be", right));
            }
            before = Some(at);
        }
        None
    }
}
