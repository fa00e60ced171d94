//! Sessions: which session of a program belongs to a conversation (context) of A2A, and what survives a crash.
//!
//! A task says in its artifact `agent-metadata` which session it works in, and notes the same for its conversation; a
//! later task finds the newest note. What must survive a crash within a turn is saved with the task.
//!
//! Only one turn at a time works in a conversation.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use switchboard_a2a::{ContextId, Task, TaskId, Timestamp};
use switchboard_admission::{ExclusiveQueue, QueuePosition};
use switchboard_engine::CallerId;

use crate::adapters::Usage;

/// A turn that works in a conversation or waits for it.
pub(super) struct ConversationTurn {
    pub(super) caller: CallerId,
    pub(super) context: ContextId,
    pub(super) task: TaskId,
}

/// One turn at a time in each conversation.
pub(super) fn conversation_queue() -> Arc<ExclusiveQueue<ConversationTurn>> {
    let is_same = |one: &ConversationTurn, other: &ConversationTurn| {
        (&one.caller, &one.context) == (&other.caller, &other.context)
    };
    ExclusiveQueue::new(is_same, |_| {})
}

/// The tasks whose turns have to end before this one begins.
pub(super) fn tasks_ahead(turn: &QueuePosition<ConversationTurn>) -> Vec<TaskId> {
    turn.read(|_, ahead| ahead.iter().map(|turn| turn.task.clone()).collect()).unwrap_or_default()
}

/// The artifact with the CLI, the model and the session.
pub(super) const METADATA_ARTIFACT: &str = "agent-metadata";
/// The artifact with the summary and the usage.
pub(super) const RESULT_ARTIFACT: &str = "result";

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct AgentMetadata {
    pub(super) cli: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) session_id: Option<String>,
    /// The difficulty, where it decides the worker.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) profile: Option<String>,
    /// The repository, if the request chose one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) repo: Option<String>,
    /// The branch of a task with a worktree.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) branch: Option<String>,
    /// The skill whose permissions hold, until a message of the conversation names another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) skill: Option<String>,
}

/// The checkpoint saved with a task before and while its program runs, for recovery.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct TurnCheckpoint {
    /// The number of the message that was being worked on. Ids of messages are their senders' and may come twice.
    pub(super) seq: Option<u64>,
    pub(super) cli: String,
    /// The session, as soon as it is known.
    pub(super) session: Option<String>,
    /// Whether the program was started for this message and may be running.
    pub(super) started: bool,
    /// The folder it works in, if that is no worktree: its repository lock is taken first after a restart.
    pub(super) folder: Option<String>,
    /// The commit that the task's worktree began with.
    pub(super) base: Option<String>,
    /// The commit that an earlier turn of the task has left.
    pub(super) tip: Option<String>,
    /// Tools that the caller has allowed for the rest of the task.
    pub(super) always: BTreeSet<String>,
    /// When the program was last started for this turn.
    pub(super) began: Option<Timestamp>,
    /// How often in a row the turn was lost soon after that.
    pub(super) losses: u32,
}

/// Tokens and money of a session, as the program counts them over several turns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct TokenTotals {
    pub(super) input_tokens: u64,
    pub(super) cached_tokens: u64,
    pub(super) output_tokens: u64,
    pub(super) reasoning_tokens: u64,
    pub(super) cost_usd: f64,
}

/// What a turn notes for the later tasks of its conversation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct ConversationRecord {
    #[serde(rename = "facts")]
    pub(super) metadata: AgentMetadata,
    /// The folder that the name in the metadata led to, or the agent's own. A link may lead elsewhere later. None in
    /// notes from before this was noted.
    pub(super) folder: Option<String>,
    /// Branches of its tasks, the newest first.
    pub(super) branches: Vec<String>,
    /// The session's usage by then, if the program counts it. Noted with every usage event, since the turn may end in
    /// any way.
    pub(super) total: TokenTotals,
}

impl ConversationRecord {
    /// Whether this program has worked: another one knows nothing of its session.
    pub(super) fn is_of(&self, cli: &str) -> bool {
        self.metadata.cli == cli
    }
}

/// What a task has cost so far.
pub(super) fn cost(task: &Task) -> TokenTotals {
    let usage = task.metadata.as_ref().and_then(|all| all.get(switchboard_engine::fold::USAGE_KEY));
    usage.and_then(|usage| usage.read().ok()).unwrap_or_default()
}

impl TokenTotals {
    pub(super) fn of(usage: &Usage) -> Self {
        Self {
            input_tokens: usage.input_tokens,
            cached_tokens: usage.cached_tokens,
            output_tokens: usage.output_tokens,
            reasoning_tokens: usage.reasoning_tokens,
            cost_usd: usage.cost_usd.filter(|cost| cost.is_finite()).unwrap_or_default().max(0.0),
        }
    }

    /// With more that came. Programs report what they like: sums saturate.
    pub(super) fn plus(self, more: Self) -> Self {
        self.combine(more, u64::saturating_add, self.cost_usd + more.cost_usd)
    }

    /// What came since an earlier total. A program that began to count anew has all of it since then.
    pub(super) fn since(self, earlier: Self) -> Self {
        let began_anew = self.input_tokens < earlier.input_tokens || self.output_tokens < earlier.output_tokens;
        if began_anew {
            return self;
        }
        self.combine(earlier, u64::saturating_sub, self.cost_usd - earlier.cost_usd)
    }

    fn combine(self, other: Self, tokens: fn(u64, u64) -> u64, cost_usd: f64) -> Self {
        Self {
            input_tokens: tokens(self.input_tokens, other.input_tokens),
            cached_tokens: tokens(self.cached_tokens, other.cached_tokens),
            output_tokens: tokens(self.output_tokens, other.output_tokens),
            reasoning_tokens: tokens(self.reasoning_tokens, other.reasoning_tokens),
            cost_usd: cost_usd.clamp(0.0, f64::MAX),
        }
    }
}
