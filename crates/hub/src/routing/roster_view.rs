//! What routing sees of the agents: names, skills, how well they have done and whether they can be reached.

use switchboard_engine::{AgentName, Caller};

use super::keywords::KeywordRule;

/// The agents, in the order of their configuration.
#[derive(Clone, Debug, Default)]
pub struct RosterView {
    /// The agents.
    pub agents: Vec<AgentView>,
    /// Comparisons of two agents.
    pub experiments: Vec<Experiment>,
}

/// One agent.
#[derive(Clone, Debug)]
pub struct AgentView {
    /// Its name.
    pub name: AgentName,
    /// The ids of its skills.
    pub skills: Vec<String>,
    /// What the words of its skills pick.
    pub keywords: Vec<KeywordRule>,
    /// How well it has done.
    pub track: Track,
    /// Whether it can be reached.
    pub availability: Availability,
}

/// How well an agent has done in the last 24 hours.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Track {
    /// How many of its tasks have ended.
    pub outcomes: u64,
    /// Of these, the part that succeeded, from 0 to 1.
    pub success_rate: f64,
    /// What a success has cost, in US dollars; failures included.
    pub cost_per_success: f64,
}

/// Whether an agent can be reached, as its probes and its circuit breaker say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Availability {
    /// As far as is known.
    #[default]
    Up,
    /// Its circuit breaker is half open.
    Probing,
    /// It is down, or its circuit breaker is open.
    Down,
}

/// A comparison of two agents at one skill: each gets half of the conversations until one has won.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Experiment {
    /// The skill.
    pub skill: String,
    /// The agent that has served it so far.
    pub control: AgentName,
    /// The one that is tried.
    pub challenger: AgentName,
    /// The one that gets all of them from now on.
    pub winner: Option<AgentName>,
}

/// Below so many outcomes an agent is given the benefit of the doubt.
const ENOUGH_OUTCOMES: u64 = 5;
/// What is left of the weight of an agent that is being probed.
const PROBING: f64 = 0.1;

impl AgentView {
    /// Whether it has a skill.
    pub fn has_skill(&self, skill: &str) -> bool {
        self.skills.iter().any(|id| id == skill)
    }

    /// Whether it can be reached, as far as is known.
    pub fn is_reachable(&self) -> bool {
        self.availability != Availability::Down
    }

    /// Its part of the messages, beside those of the others.
    pub fn weight(&self) -> f64 {
        let Track { outcomes, success_rate, cost_per_success } = self.track;
        let merit = match outcomes {
            0..ENOUGH_OUTCOMES => 1.0,
            _ => success_rate / (1.0 + cost_per_success.max(0.0)),
        };
        merit
            * match self.availability {
                Availability::Up => 1.0,
                Availability::Probing => PROBING,
                Availability::Down => 0.0,
            }
    }
}

impl RosterView {
    /// Whether an agent can be reached, as far as is known.
    pub fn is_reachable(&self, name: &AgentName) -> bool {
        self.find(name).is_none_or(AgentView::is_reachable)
    }

    /// An agent by its name.
    pub fn find(&self, name: &AgentName) -> Option<&AgentView> {
        self.agents.iter().find(|agent| agent.name == *name)
    }

    /// Those that a caller may call.
    pub fn callable<'a>(&'a self, caller: &'a Caller) -> impl Iterator<Item = &'a AgentView> {
        self.agents.iter().filter(|agent| caller.scopes.agents.allows(&agent.name))
    }
}
