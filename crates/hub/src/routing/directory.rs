//! The directory at the root: another directory, with the rules of routing in front of it.
//!
//! Addresses of agents and the default agent are the other one's. A message to the root without hints, in a
//! fleet without keywords, is resolved by that one alone, and no view of the agents is made. What has decided is stored with
//! every message, the default agent too.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::RwLock;
use switchboard_a2a::Json;
use switchboard_engine::{Address, AgentName, Caller, CallerId, Directory, Error, Hosted, Resolved, RoutingRequest};
use switchboard_host::serve::ReloadListeners;

use super::RoutingRules;
use super::choice::{Choice, RoutingQuery, choose};
use super::cooldown_key::cooldown;
use super::decision::{DecidedBy, Decision};
use super::drops::{DropReason, Drops};
use super::keywords::KeywordRule;
use super::roster_view::{AgentView, Availability, Experiment, RosterView, Track};
use crate::metric_definitions as metric;
use crate::tasks::channel_plan::{CHANNEL, ChannelPlan};
use crate::tasks::fanout_plan::{FANOUT, FanoutPlan};

/// What is known of an agent beside its skills.
pub trait AgentSignals: Send + Sync + 'static {
    /// How well it has done.
    fn track(&self, agent: &AgentName) -> Track;
    /// Whether it can be reached.
    fn availability(&self, agent: &AgentName) -> Availability;
    /// Comparisons of two agents.
    fn experiments(&self) -> Vec<Experiment>;
}

/// Nothing is known: all agents have the same weight.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoSignals;

impl AgentSignals for NoSignals {
    fn track(&self, _agent: &AgentName) -> Track {
        Track::default()
    }

    fn availability(&self, _agent: &AgentName) -> Availability {
        Availability::default()
    }

    fn experiments(&self) -> Vec<Experiment> {
        Vec::new()
    }
}

/// A directory with routing at the root.
pub struct RoutingDirectory {
    agents: Arc<dyn Directory>,
    /// Replaced when the settings are read again.
    rules: RwLock<Arc<RoutingRules>>,
    signals: Arc<dyn AgentSignals>,
    drops: Arc<Drops>,
    /// Whether the helm was missed last, which is logged once.
    helm_is_missing: AtomicBool,
}

impl RoutingDirectory {
    /// Routes between the agents of another directory.
    pub fn new(
        agents: Arc<dyn Directory>,
        rules: RoutingRules,
        signals: Arc<dyn AgentSignals>,
        drops: Arc<Drops>,
    ) -> Self {
        Self { agents, rules: RwLock::new(Arc::new(rules)), signals, drops, helm_is_missing: AtomicBool::new(false) }
    }

    /// Routes by other rules from the next message on.
    pub fn set_rules(&self, rules: RoutingRules) {
        *self.rules.write() = Arc::new(rules);
    }

    /// Takes up changed rules when the configuration is read again.
    pub fn follow(self: &Arc<Self>, reloads: &ReloadListeners) {
        // The listeners belong to what the directory is made of.
        let directory = Arc::downgrade(self);
        reloads.listen(move |config| {
            let Some(directory) = directory.upgrade() else { return };
            // The fan-out itself has the limit that it was started with.
            let max_targets = directory.rules.read().max_targets;
            directory.set_rules(RoutingRules { max_targets, ..RoutingRules::configured(&config.hub) });
        });
    }

    fn view(&self) -> RosterView {
        let see = |hosted: Arc<Hosted>| {
            let served = hosted.served();
            let skills = &served.manifest.skills;
            AgentView {
                name: hosted.name.clone(),
                skills: skills.iter().map(|skill| skill.id.clone()).collect(),
                keywords: skills.iter().flat_map(KeywordRule::of_skill).collect(),
                track: self.signals.track(&hosted.name),
                availability: self.signals.availability(&hosted.name),
            }
        };
        let agents = self.agents.agents().into_iter().filter(|hosted| !hosted.name.is_own());
        RosterView { agents: agents.map(see).collect(), experiments: self.signals.experiments() }
    }

    fn has_keywords(&self, rules: &RoutingRules) -> bool {
        let of_skills =
            |hosted: &Arc<Hosted>| hosted.served().manifest.skills.iter().any(|skill| !skill.keywords.is_empty());
        !rules.keywords.is_empty() || self.agents.agents().iter().any(of_skills)
    }

    fn route(&self, caller: &Caller, asked: &RoutingRequest<'_>) -> Result<Resolved, Error> {
        let rules = self.rules.read().clone();
        let hints = asked.hints;
        let last_fanout: Option<FanoutPlan> = match asked.last_agent {
            Some(agent) if agent.as_str() == FANOUT => asked.last_decision.and_then(|decision| decision.read().ok()),
            _ => None,
        };
        // What is sent into a channel's conversation in another way goes to the agent that the channel talks to.
        let of_channel = match asked.last_agent {
            Some(agent) if agent.as_str() == CHANNEL => asked.last_decision.and_then(ChannelPlan::read),
            _ => None,
        };
        let last_agent = of_channel.and_then(|plan| plan.target());
        let last_agent = last_agent.as_ref().or(asked.last_agent);
        let says_nothing = hints.targets.is_empty() && hints.fanout.is_none() && hints.skill.is_none();
        let choice = match says_nothing && asked.last_agent.is_none() && !self.has_keywords(&rules) {
            true => Choice::Default,
            false => {
                let query = RoutingQuery {
                    caller,
                    message: asked.message,
                    hints,
                    last_agent,
                    last_fanout: last_fanout.as_ref(),
                };
                choose(&self.view(), &rules, &query)?
            }
        };
        let by_default = |hosted: Arc<Hosted>| {
            let decision = Decision::of(&hosted.name, DecidedBy::Default, hints.skill.as_deref());
            (hosted, decision)
        };
        let (hosted, decision) = match choice {
            Choice::Decided(decision) => (self.found(&decision.agent)?, decision),
            // Also if it is down: there is no other, and a task waits for it.
            Choice::Default => by_default(self.default_agent(caller, &rules)?),
            Choice::DefaultInPlaceOf(passed_by) => match self.default_agent(caller, &rules) {
                Ok(hosted) if self.signals.availability(&hosted.name) != Availability::Down => {
                    let (hosted, decision) = by_default(hosted);
                    (hosted, Decision { left_out: vec![passed_by.agent], ..decision })
                }
                _ => (self.found(&passed_by.agent)?, passed_by),
            },
        };
        let cooldown = cooldown(&rules, decision.skill.as_deref(), hints);
        Ok(Resolved { hosted, decision: decision.to_json(), cooldown })
    }

    fn found(&self, name: &AgentName) -> Result<Arc<Hosted>, Error> {
        self.agents.find(name).ok_or_else(|| gone(name))
    }

    /// The helm as long as it is served: one that only ends what it has begun gets nothing new.
    fn default_agent(&self, caller: &Caller, rules: &RoutingRules) -> Result<Arc<Hosted>, Error> {
        let helm = rules.helm.as_ref();
        let served = helm.and_then(|helm| self.agents.agents().into_iter().find(|agent| agent.name == *helm));
        let is_missing = helm.is_some() && served.is_none();
        if is_missing != self.helm_is_missing.swap(is_missing, Ordering::Relaxed) && is_missing {
            let helm = helm.map(AgentName::as_str);
            tracing::warn!(helm, "no such agent is served (hub.roles.helm): the default agent takes its place");
        }
        match served {
            Some(helm) if caller.scopes.agents.allows(&helm.name) => Ok(helm),
            // The caller has not named it, and is not told its name.
            Some(_) => Err(Error::Forbidden(String::new())),
            None => self.agents.resolve(&Address::Root, caller, None).map(|resolved| resolved.hosted),
        }
    }
}

/// The agent was there a moment ago, or fan-outs are not served.
fn gone(name: &AgentName) -> Error {
    if name.as_str() == FANOUT {
        return Error::Unsupported("this server does not fan out: name one agent in targets".to_owned());
    }
    let problem = format!("agent {name} is not served here now");
    Error::Unavailable { problem, retry_after_ms: 1_000 }
}

impl Directory for RoutingDirectory {
    fn resolve(
        &self,
        address: &Address,
        caller: &Caller,
        asked: Option<RoutingRequest<'_>>,
    ) -> Result<Resolved, Error> {
        let (Address::Root, Some(asked)) = (address, asked) else {
            return self.agents.resolve(address, caller, asked);
        };
        let resolved = self.route(caller, &asked);
        if let Err(error) = &resolved {
            let (reason, key) = match error {
                Error::AgentNotFound { asked, .. } => (DropReason::TargetUnresolved, asked.as_str()),
                Error::Forbidden(agent) => (DropReason::TargetUnresolved, agent.as_str()),
                Error::SkillNotOffered { skill, .. } | Error::SkillNotFound { skill, .. } => {
                    (DropReason::NoSkill, skill.as_str())
                }
                _ => return resolved,
            };
            self.drops.record(reason, key, &caller.id, &error.to_string());
        }
        resolved
    }

    fn find(&self, name: &AgentName) -> Option<Arc<Hosted>> {
        self.agents.find(name)
    }

    fn draining(&self, name: &AgentName) -> Option<Arc<Hosted>> {
        self.agents.draining(name)
    }

    fn agents(&self) -> Vec<Arc<Hosted>> {
        self.agents.agents()
    }

    fn is_up(&self, name: &AgentName) -> bool {
        self.agents.is_up(name)
    }

    fn accepted(&self, decision: &Json) {
        if let Some(by) = DecidedBy::of_stored(decision) {
            metrics::counter!(metric::ROUTED, "by" => by.name()).increment(1);
        }
    }

    fn refused_by_cooldown(&self, caller: &CallerId, agent: &AgentName, key: &str) {
        let message = format!("{key} cools down, so agent {agent} was not asked");
        self.drops.record(DropReason::Cooldown, key, caller, &message);
    }
}
