//! Targets that a caller names: one agent, or a fan-out to several.

use switchboard_engine::{AgentName, Error};
use switchboard_host::config::suggestion::nearest;

use super::RoutingRules;
use super::choice::RoutingQuery;
use super::decision::{DecidedBy, Decision};
use super::roster_view::{AgentView, RosterView};
use crate::tasks::fanout_plan::{FANOUT, FanoutPlan, FanoutPolicy};

/// The target that stands for every agent that the caller may call and that has the skill.
pub(crate) const ALL: &str = "all";
/// No agent's name is longer; names are the caller's to choose, and need not be short.
const LONGEST_NAME: usize = 63;

/// What the targets decide; nothing if the caller has named none.
pub(super) fn decide(
    view: &RosterView,
    rules: &RoutingRules,
    query: &RoutingQuery<'_>,
) -> Result<Option<Decision>, Error> {
    let hints = query.hints;
    let policy = match hints.fanout.as_deref().map(str::parse::<FanoutPolicy>) {
        None => None,
        Some(Ok(policy)) => Some(policy),
        Some(Err(unknown)) => return Err(invalid("metadata.fanout", unknown.to_string())),
    };
    let skill = hints.skill.as_deref();
    let wants_all = hints.targets.iter().any(|name| name.as_str() == ALL);
    if let ([one], None, false) = (hints.targets.as_slice(), policy, wants_all) {
        let agent = offered(view, query, one)?;
        return Ok(Some(Decision::of(&agent.name, DecidedBy::Target, skill)));
    }
    if hints.targets.is_empty() && policy.is_none() {
        return Ok(None);
    }
    // Those beside `all` add nothing, but a name that is wrong is told of.
    let named = named(view, query)?;
    let policy = policy.unwrap_or_default();
    let (targets, left_out) = match wants_all || hints.targets.is_empty() {
        true => reachable(view, all(view, query)?, policy),
        false => (named, Vec::new()),
    };
    let targets = in_order(view, targets, policy);
    if let FanoutPolicy::Quorum(Some(count)) = policy
        && count.get() > targets.len()
    {
        let problem = format!("{count} of {} targets cannot complete: ask for fewer", targets.len());
        return Err(invalid("metadata.fanout", problem));
    }
    if targets.len() > rules.max_targets {
        let problem = format!("{} agents are more than hub.fanout.max ({})", targets.len(), rules.max_targets);
        return Err(invalid("metadata.targets", problem));
    }
    let mut decision = Decision::of(&AgentName::from(FANOUT), DecidedBy::Target, skill);
    decision.fanout = Some(FanoutPlan { targets, policy });
    decision.left_out = left_out;
    Ok(Some(decision))
}

/// In the order they were asked for in, but of those that are tried one after the other the ones that are down come last: each
/// would delay the next one.
pub(super) fn in_order(view: &RosterView, mut targets: Vec<AgentName>, policy: FanoutPolicy) -> Vec<AgentName> {
    if policy == FanoutPolicy::Failover {
        targets.sort_by_key(|name| !view.is_reachable(name));
    }
    targets
}

/// Of all agents those that are not down, and those that are. All of them if no other can be reached, or if too few would be
/// left to complete.
fn reachable(view: &RosterView, all: Vec<AgentName>, policy: FanoutPolicy) -> (Vec<AgentName>, Vec<AgentName>) {
    let needed = match policy {
        FanoutPolicy::Quorum(Some(count)) => count.get(),
        _ => 1,
    };
    let (up, down): (Vec<AgentName>, Vec<AgentName>) = all.iter().cloned().partition(|name| view.is_reachable(name));
    if up.len() < needed { (all, Vec::new()) } else { (up, down) }
}

/// Every agent that the caller may call and that has the skill.
fn all(view: &RosterView, query: &RoutingQuery<'_>) -> Result<Vec<AgentName>, Error> {
    let skill = query.hints.skill.as_deref();
    let able = view.callable(query.caller).filter(|agent| skill.is_none_or(|skill| agent.has_skill(skill)));
    let names: Vec<AgentName> = able.map(|agent| agent.name.clone()).collect();
    match (names.is_empty(), skill) {
        (false, _) => Ok(names),
        (true, Some(skill)) => Err(skill_not_found(view, query, skill)),
        (true, None) => Err(Error::AgentNotFound { asked: String::new(), known: Vec::new() }),
    }
}

/// The agents that the caller has named.
fn named(view: &RosterView, query: &RoutingQuery<'_>) -> Result<Vec<AgentName>, Error> {
    let mut names: Vec<AgentName> = Vec::new();
    for target in query.hints.targets.iter().filter(|target| target.as_str() != ALL) {
        let agent = offered(view, query, target)?;
        if !names.contains(&agent.name) {
            names.push(agent.name.clone());
        }
    }
    Ok(names)
}

/// An agent that is there, that the caller may call, and that has the skill.
fn offered<'a>(view: &'a RosterView, query: &RoutingQuery<'_>, name: &AgentName) -> Result<&'a AgentView, Error> {
    let Some(agent) = view.find(name) else { return Err(agent_not_found(view, query, name)) };
    if !query.caller.scopes.agents.allows(name) {
        return Err(Error::Forbidden(name.to_string()));
    }
    match query.hints.skill.as_deref() {
        Some(skill) if !query.hints.force && !agent.has_skill(skill) => Err(Error::SkillNotOffered {
            agent: name.to_string(),
            skill: shortened(skill),
            offered: likeliest(skill, agent.skills.clone()),
        }),
        _ => Ok(agent),
    }
}

fn agent_not_found(view: &RosterView, query: &RoutingQuery<'_>, name: &AgentName) -> Error {
    let known = view.callable(query.caller).map(|agent| agent.name.to_string()).collect();
    Error::AgentNotFound { asked: shortened(name.as_str()), known: likeliest(name.as_str(), known) }
}

pub(super) fn skill_not_found(view: &RosterView, query: &RoutingQuery<'_>, skill: &str) -> Error {
    let mut known: Vec<String> = Vec::new();
    for id in view.callable(query.caller).flat_map(|agent| &agent.skills) {
        if !known.contains(id) {
            known.push(id.clone());
        }
    }
    Error::SkillNotFound { skill: shortened(skill), known: likeliest(skill, known) }
}

/// The names with the one first that was most likely meant.
fn likeliest(asked: &str, mut names: Vec<String>) -> Vec<String> {
    let meant = nearest(asked, names.iter().map(String::as_str)).map(str::to_owned);
    if let Some(index) = meant.and_then(|meant| names.iter().position(|name| *name == meant)) {
        let name = names.remove(index);
        names.insert(0, name);
    }
    names
}

fn shortened(name: &str) -> String {
    name.chars().take(LONGEST_NAME).collect()
}

fn invalid(field: &'static str, problem: String) -> Error {
    Error::Invalid { field, problem }
}
