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
    let targets = match wants_all || hints.targets.is_empty() {
        true => all(view, query)?,
        false => named,
    };
    if let FanoutPolicy::Quorum(Some(count)) = policy.unwrap_or_default()
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
    decision.fanout = Some(FanoutPlan { targets, policy: policy.unwrap_or_default() });
    Ok(Some(decision))
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
