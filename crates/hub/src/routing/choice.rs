//! The order of the rules: targets, conversation, skill, keyword, default.

use switchboard_a2a::Message;
use switchboard_engine::{AgentName, Caller, Error, RoutingHints};

use super::RoutingRules;
use super::decision::{DecidedBy, Decision};
use super::keywords::KeywordRule;
use super::rendezvous;
use super::roster_view::{AgentView, RosterView};
use super::targets;
use crate::tasks::fanout_plan::FanoutPlan;

/// A message that begins a new task at the root.
#[derive(Clone, Copy, Debug)]
pub struct RoutingQuery<'a> {
    /// The caller.
    pub caller: &'a Caller,
    /// The message.
    pub message: &'a Message,
    /// What the caller says about who should serve it.
    pub hints: &'a RoutingHints,
    /// The agent of the caller's newest task in the same conversation.
    pub last_agent: Option<&'a AgentName>,
    /// What that one was to do, if it was a fan-out.
    pub last_fanout: Option<&'a FanoutPlan>,
}

/// What the rules have come to.
#[derive(Clone, Debug, PartialEq)]
pub enum Choice {
    /// An agent.
    Decided(Decision),
    /// None of the agents in particular: the default one.
    Default,
    /// The default one, because the agent of this decision is down; that one all the same if the default one is too.
    DefaultInPlaceOf(Decision),
}

/// Picks the agent.
pub fn choose(view: &RosterView, rules: &RoutingRules, query: &RoutingQuery<'_>) -> Result<Choice, Error> {
    if let Some(decision) = targets::decide(view, rules, query)? {
        return Ok(Choice::Decided(decision));
    }
    if let Some(decision) = same_conversation(view, query) {
        return Ok(Choice::Decided(decision));
    }
    if let Some(skill) = query.hints.skill.as_deref() {
        return match by_skill(view, query, skill) {
            Some(decision) => Ok(Choice::Decided(decision)),
            None if rules.refuse_unknown_skills => Err(targets::skill_not_found(view, query, skill)),
            None => Ok(Choice::Default),
        };
    }
    Ok(by_keyword(view, rules, query))
}

/// The agent that the conversation was with, if it is still there and has the skill.
fn same_conversation(view: &RosterView, query: &RoutingQuery<'_>) -> Option<Decision> {
    let (last, skill) = (query.last_agent?, query.hints.skill.as_deref());
    let still_serves = |name: &AgentName| {
        let agent = view.find(name).filter(|agent| query.caller.scopes.agents.allows(&agent.name));
        agent.is_some_and(|agent| skill.is_none_or(|skill| agent.has_skill(skill)))
    };
    if let Some(plan) = query.last_fanout {
        let targets = plan.targets.iter().filter(|name| still_serves(name)).cloned().collect();
        let targets = targets::in_order(view, targets, plan.policy);
        if targets.is_empty() {
            return None;
        }
        let mut decision = Decision::of(last, DecidedBy::Context, skill);
        decision.fanout = Some(FanoutPlan { targets, policy: plan.policy });
        return Some(decision);
    }
    still_serves(last).then(|| Decision::of(last, DecidedBy::Context, skill))
}

/// One of the agents that have the skill: by an experiment, else by weight.
fn by_skill(view: &RosterView, query: &RoutingQuery<'_>, skill: &str) -> Option<Decision> {
    let able: Vec<&AgentView> = view.callable(query.caller).filter(|agent| agent.has_skill(skill)).collect();
    let key = hash_key(query.message);
    if let Some(experiment) = view.experiments.iter().find(|experiment| experiment.skill == skill) {
        let arms = match &experiment.winner {
            Some(winner) => vec![winner],
            None => vec![&experiment.control, &experiment.challenger],
        };
        // Whatever its success so far: an arm that gets nothing more could never lose.
        let reachable = |name: &&AgentName| able.iter().any(|agent| agent.name == **name && agent.is_reachable());
        let arms: Vec<&AgentName> = arms.into_iter().filter(reachable).collect();
        if let Some((agent, _)) = rendezvous::pick(&key, arms.iter().map(|arm| (*arm, 1.0))) {
            let mut decision = Decision::of(agent, DecidedBy::Experiment, Some(skill));
            decision.candidates = arms.into_iter().cloned().collect();
            return Some(decision);
        }
    }
    let (agent, weight) = rendezvous::pick(&key, able.iter().map(|agent| (&agent.name, agent.weight())))?;
    let mut decision = Decision::of(agent, DecidedBy::Skill, Some(skill));
    decision.candidates = able.iter().map(|agent| agent.name.clone()).collect();
    decision.weight = (able.len() > 1).then_some(weight);
    Some(decision)
}

/// What stays with one agent: the conversation, else the message.
fn hash_key(message: &Message) -> String {
    let context = message.context_id.as_ref().map(|context| context.as_str());
    context.unwrap_or(message.message_id.as_str()).to_owned()
}

/// What the first keyword rule says that matches and picks an agent that the caller may call. The operator's own rules go
/// before the words of skills. A rule whose agent is down is passed by if another one or the default agent can serve.
fn by_keyword(view: &RosterView, rules: &RoutingRules, query: &RoutingQuery<'_>) -> Choice {
    let of_skills = view.callable(query.caller).flat_map(|agent| &agent.keywords);
    let mut all = rules.keywords.iter().chain(of_skills).peekable();
    if all.peek().is_none() {
        return Choice::Default;
    }
    let text = query.message.joined_text().to_lowercase();
    let matching = all.filter(|rule| rule.matches(&text));
    let mut passed_by: Option<Decision> = None;
    for decision in matching.filter_map(|rule| picked_by(view, query, rule)) {
        if view.is_reachable(&decision.agent) {
            let left_out = passed_by.map(|passed_by| passed_by.agent).into_iter().collect();
            return Choice::Decided(Decision { left_out, ..decision });
        }
        passed_by.get_or_insert(decision);
    }
    passed_by.map_or(Choice::Default, Choice::DefaultInPlaceOf)
}

fn picked_by(view: &RosterView, query: &RoutingQuery<'_>, rule: &KeywordRule) -> Option<Decision> {
    let skill = rule.skill.as_deref();
    let decision = match (&rule.agent, skill) {
        (Some(name), _) => {
            let agent = view.callable(query.caller).find(|agent| agent.name == *name)?;
            Decision::of(&agent.name, DecidedBy::Keyword, skill)
        }
        (None, Some(skill)) => by_skill(view, query, skill)?,
        (None, None) => return None,
    };
    Some(Decision { by: DecidedBy::Keyword, ..decision })
}
