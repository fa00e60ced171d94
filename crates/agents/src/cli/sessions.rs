//! Which conversation of a program belongs to a conversation of A2A.
//!
//! Nothing is kept beside the log: a task says in its artifact `agent-metadata` which session it worked in, and a later
//! task of the same context reads that. What must survive a crash within a turn is saved with the task.

use serde::{Deserialize, Serialize};
use switchboard_a2a::{Artifact, PartContent, Task};
use switchboard_adapters::Usage;

/// The artifact that says what is at work.
pub(super) const METADATA_ARTIFACT: &str = "agent-metadata";
/// The artifact that says what came of it.
pub(super) const RESULT_ARTIFACT: &str = "result";
/// How many of a context's tasks are looked through for a session.
pub(super) const LOOK_BACK: usize = 20;

/// What the artifact `agent-metadata` holds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Facts {
    pub(super) cli: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) session_id: Option<String>,
    /// Which kind of task it was taken for, where that decides who works.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) profile: Option<String>,
    /// The repository, if the request chose one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) repo: Option<String>,
    /// The branch of a task that worked in a copy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) branch: Option<String>,
}

/// What is saved with a task before and while its program works.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Saved {
    /// The message that was being worked on.
    pub(super) message: String,
    pub(super) cli: String,
    /// The session, as soon as it is known.
    pub(super) session: Option<String>,
    /// Whether the program was started for this message and may be at work.
    pub(super) started: bool,
    /// The commit that the task's copy of the repository began with.
    pub(super) base: Option<String>,
    /// The commit that an earlier turn of the task has left.
    pub(super) tip: Option<String>,
}

/// Tokens and money of a session, as the program counts them over several turns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Total {
    pub(super) input_tokens: u64,
    pub(super) cached_tokens: u64,
    pub(super) output_tokens: u64,
    pub(super) reasoning_tokens: u64,
    pub(super) cost_usd: f64,
}

/// A session that an earlier turn worked in.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Past {
    pub(super) facts: Facts,
    /// What it had cost by then.
    pub(super) total: Total,
}

/// Where the newest of some tasks has worked, which come newest first. A task that ended before it had a session counts
/// as one of the session before it.
pub(super) fn newest(tasks: &[Task]) -> Option<Past> {
    let mut facts = tasks.iter().find_map(facts)?;
    if facts.session_id.is_none() {
        let earlier = tasks.iter().filter_map(self::facts).filter(|earlier| earlier.cli == facts.cli);
        facts.session_id = earlier.filter_map(|earlier| earlier.session_id).next();
    }
    let same = |task: &&Task| self::facts(task).is_some_and(|other| other.session_id == facts.session_id);
    let mut past = Total::default();
    for task in tasks.iter().filter(same) {
        if let Some(total) = total(task) {
            past = past.and(total);
            break;
        }
        // It did not come to a result; what it cost is all that is known of it.
        past = past.and(cost(task));
    }
    Some(Past { facts, total: past })
}

/// What a task says is at work on it.
pub(super) fn facts(task: &Task) -> Option<Facts> {
    read(task, METADATA_ARTIFACT)
}

fn total(task: &Task) -> Option<Total> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Result {
        session_usage: Option<Total>,
    }
    read::<Result>(task, RESULT_ARTIFACT)?.session_usage
}

/// What a task has cost so far.
pub(super) fn cost(task: &Task) -> Total {
    let usage = task.metadata.as_ref().and_then(|all| all.get(switchboard_engine::fold::USAGE_KEY));
    usage.and_then(|usage| usage.read().ok()).unwrap_or_default()
}

fn read<T: serde::de::DeserializeOwned>(task: &Task, id: &str) -> Option<T> {
    let artifact: &Artifact = task.artifacts.iter().find(|artifact| artifact.artifact_id.as_str() == id)?;
    artifact.parts.iter().find_map(|part| match &part.content {
        PartContent::Data(json) => json.read().ok(),
        _ => None,
    })
}

impl Total {
    /// A program's report.
    pub(super) fn of(usage: &Usage) -> Self {
        Self {
            input_tokens: usage.input_tokens,
            cached_tokens: usage.cached_tokens,
            output_tokens: usage.output_tokens,
            reasoning_tokens: usage.reasoning_tokens,
            cost_usd: usage.cost_usd.filter(|cost| cost.is_finite()).unwrap_or_default().max(0.0),
        }
    }

    fn and(self, other: Self) -> Self {
        Self {
            input_tokens: self.input_tokens.saturating_add(other.input_tokens),
            cached_tokens: self.cached_tokens.saturating_add(other.cached_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
            reasoning_tokens: self.reasoning_tokens.saturating_add(other.reasoning_tokens),
            cost_usd: self.cost_usd + other.cost_usd,
        }
    }

    /// What came since an earlier total. A program that began to count anew has all of it since then.
    pub(super) fn since(self, earlier: Self) -> Self {
        let began_anew = self.input_tokens < earlier.input_tokens || self.output_tokens < earlier.output_tokens;
        if began_anew {
            return self;
        }
        Self {
            input_tokens: self.input_tokens - earlier.input_tokens,
            cached_tokens: self.cached_tokens.saturating_sub(earlier.cached_tokens),
            output_tokens: self.output_tokens - earlier.output_tokens,
            reasoning_tokens: self.reasoning_tokens.saturating_sub(earlier.reasoning_tokens),
            cost_usd: (self.cost_usd - earlier.cost_usd).max(0.0),
        }
    }
}
