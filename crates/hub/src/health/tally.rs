//! The outcomes of a page, added up before they go into the sums they belong to: most of a busy page are of few agents,
//! skills and callers, and each of those costs one look-up.

use std::collections::BTreeMap;

use switchboard_a2a::Timestamp;
use switchboard_engine::{AgentName, CallerId};

use super::outcome::Outcome;
use super::sum::Sum;
use super::sums::{MINUTE_MS, Outcomes, Sums};

/// Outcomes that count in the same sums.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Group {
    /// The minute.
    at: i64,
    agent: AgentName,
    skill: String,
    caller: CallerId,
}

/// The outcomes of a page.
#[derive(Debug, Default)]
pub(crate) struct Tally(BTreeMap<Group, Sum>);

impl Tally {
    pub(crate) fn add(&mut self, outcome: &Outcome, skill: &str) {
        let group = Group {
            at: outcome.at.0.div_euclid(MINUTE_MS) * MINUTE_MS,
            agent: outcome.agent.clone(),
            skill: skill.to_owned(),
            caller: outcome.actor.clone(),
        };
        self.0.entry(group).or_default().add(outcome);
    }

    /// The sums that change, which begin with what `known` has of them.
    pub(crate) fn onto(&self, known: &Sums, callers: usize) -> Sums {
        let mut sums = Sums::default();
        for (group, sum) in &self.0 {
            let Group { at, agent, skill, caller } = group;
            sums.add(&Outcomes { at: Timestamp(*at), agent, skill, caller, sum }, known, callers);
        }
        sums
    }
}
