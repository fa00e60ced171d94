//! Skills of an agent that begin only once a reviewer has approved them. What asks the reviewer stands before the agent's
//! turns; the kernel has to know the skills as well, because a message to a running turn passes nothing that asks.

use std::collections::BTreeSet;

use switchboard_a2a::{Message, Metadata};

use crate::error::Error;
use crate::event::Received;
use crate::live_task::{Core, LiveTask};
use crate::review::Reviewer;
use crate::routing_hints::RoutingHints;

/// Which skills of an agent need an approval.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ReviewedSkills {
    /// None.
    #[default]
    None,
    /// All, known or not, but these.
    AllBut(BTreeSet<String>),
}

impl ReviewedSkills {
    /// Whether a skill needs one.
    pub fn contains(&self, skill: &str) -> bool {
        match self {
            Self::None => false,
            Self::AllBut(open) => !open.contains(skill),
        }
    }
}

impl RoutingHints {
    /// Every skill that a message names: an agent may read another one than routing does.
    pub fn named_skills(message: &Message, request: Option<&Metadata>) -> BTreeSet<String> {
        let all = [message.metadata.as_ref(), request].into_iter().flatten();
        let named = all.flat_map(|metadata| [metadata.get("skill"), metadata.get("skillHint")]).flatten();
        named.filter_map(switchboard_a2a::Json::as_text).filter(|skill| !skill.is_empty()).collect()
    }
}

impl LiveTask {
    /// Refuses a message to a task that names a skill which nobody has approved: its turn may take the message while it
    /// runs. The skill that the turn was let go on with may be named again. So may the one that an open question is about, if
    /// the message answers it; one that waits for an operator's decision would begin with an approval that is not about it.
    pub(crate) fn check_reviewed_skills(&self, core: &Core, received: &Received) -> Result<(), Error> {
        let Some(served) = self.hosted.as_ref().map(|hosted| hosted.served()) else { return Ok(()) };
        if served.reviewed_skills == ReviewedSkills::None {
            return Ok(());
        }
        let named = RoutingHints::named_skills(&received.message, received.metadata.as_ref());
        let answered = core.fold.review().filter(|review| review.reviewer == Reviewer::Caller);
        let asked = answered.and_then(|review| review.skill);
        let is_open = |skill: &String| {
            !served.reviewed_skills.contains(skill)
                || core.fold.kernel.approved.contains(skill)
                || core.fold.kernel.granted.as_ref() == Some(skill)
                || asked.as_ref() == Some(skill)
        };
        match named.iter().find(|skill| !is_open(skill)) {
            None => Ok(()),
            Some(skill) => {
                let shown: String = skill.chars().take(SHOWN).collect();
                let problem = format!(
                    "skill {shown:?} of agent {} needs an approval that this task does not have: begin a new task",
                    self.task.agent
                );
                Err(Error::Invalid { field: "message.metadata.skill", problem })
            }
        }
    }
}

/// So many characters of a skill's name are told: it is the caller's to choose.
const SHOWN: usize = 60;
