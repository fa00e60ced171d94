//! The outcome of a task: its terminal event, with what its first message asked for and what its work has cost. It is not
//! stored anywhere: every reader of the log computes the same one.

use serde::Serialize;
use switchboard_a2a::extension::Payload;
use switchboard_a2a::extension::confidence::Confidence;
use switchboard_a2a::extension::cost::Cost;
use switchboard_a2a::{Metadata, TaskState, TaskStatusUpdate, Timestamp};
use switchboard_engine::event::Event;
use switchboard_engine::fold::USAGE_KEY;
use switchboard_engine::store::{EventRow, TaskIdentity};
use switchboard_engine::{AgentName, CallerId, Seq, Usage, state_label};

use super::pricing::Pricing;
use crate::feed::TaskOrigin;

/// What became of a task.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Outcome {
    #[serde(serialize_with = "agent_text")]
    pub(crate) agent: AgentName,
    /// The one that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) skill: Option<String>,
    /// Who asked.
    pub(crate) actor: CallerId,
    #[serde(serialize_with = "state_text")]
    pub(crate) state: TaskState,
    /// Completed, and the agent does not say otherwise.
    pub(crate) success: bool,
    /// When it ended.
    #[serde(skip)]
    pub(crate) at: Timestamp,
    /// From the first message to the end.
    pub(crate) duration_ms: u64,
    /// From the first message until work began; absent if the log does not say at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) queue_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) input_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) output_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cost_usd: Option<f64>,
    /// Whether the cost is tokens times their price, because the agent has not said.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) estimated: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) model: Option<String>,
    /// The agent's own, from 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) confidence: Option<f64>,
}

impl Outcome {
    /// The outcome of the task whose terminal event is in a row.
    pub(crate) fn of(
        task: &TaskIdentity,
        origin: &TaskOrigin,
        row: &EventRow,
        end: &TaskStatusUpdate,
        pricing: Option<Pricing>,
    ) -> Self {
        let said = Said::in_row(row, end);
        let at = end.status.timestamp.unwrap_or(origin.received_at);
        let since = |time: Timestamp| u64::try_from(time.0.saturating_sub(origin.received_at.0)).unwrap_or(0);
        let tokens = said.tokens;
        let estimate = || Some(pricing?.cost(tokens?.0, tokens?.1));
        let estimated = if said.cost_usd.is_none() { estimate() } else { None };
        Self {
            agent: task.agent.clone(),
            skill: origin.skill.clone(),
            actor: task.owner.clone(),
            state: end.status.state,
            success: end.status.state == TaskState::Completed && said.success != Some(false),
            at,
            duration_ms: since(at),
            queue_ms: said.began_at.map(since),
            input_tokens: tokens.map(|tokens| tokens.0),
            output_tokens: tokens.map(|tokens| tokens.1),
            cost_usd: said.cost_usd.or(estimated),
            estimated: estimated.is_some(),
            model: said.model,
            confidence: said.confidence,
        }
    }
}

/// What the events of a row say of the work.
#[derive(Default)]
struct Said {
    tokens: Option<(u64, u64)>,
    cost_usd: Option<f64>,
    model: Option<String>,
    confidence: Option<f64>,
    success: Option<bool>,
    began_at: Option<Timestamp>,
}

impl Said {
    fn in_row(row: &EventRow, end: &TaskStatusUpdate) -> Self {
        let mut said = Self::default();
        for (seq, line) in row.lines() {
            if line.starts_with(br#"{"artifactUpdate""#) && carries_extension(line) {
                if let Ok(Event::ArtifactUpdate(update)) = Event::decode(line) {
                    said.cost(Cost::in_artifact(&update.artifact).pop());
                    said.confidence(Confidence::in_artifact(&update.artifact).pop());
                }
            } else if said.began_at.is_none()
                && row.first_seq == Seq(1)
                && seq > Seq(1)
                && line.starts_with(br#"{"statusUpdate""#)
                && let Ok(Event::StatusUpdate(update)) = Event::decode(line)
            {
                said.began_at = update.status.timestamp;
            }
        }
        if let Some(message) = &end.status.message {
            said.cost(Cost::in_message(message).pop());
            said.confidence(Confidence::in_message(message).pop());
        }
        said.cost(Cost::in_metadata(end.metadata.as_ref()));
        said.confidence(Confidence::in_metadata(end.metadata.as_ref()));
        said.usage(end.metadata.as_ref());
        said
    }

    fn cost(&mut self, cost: Option<Cost>) {
        let Some(cost) = cost else { return };
        self.tokens = cost.usage.map(|usage| (usage.input_tokens, usage.output_tokens)).or(self.tokens);
        self.cost_usd = cost.cost_usd.or(self.cost_usd);
        self.model = cost.model.or_else(|| self.model.take());
        self.said_success(cost.success);
    }

    fn confidence(&mut self, confidence: Option<Confidence>) {
        let Some(confidence) = confidence else { return };
        self.confidence = Some(confidence.confidence);
        self.said_success(confidence.success);
    }

    /// One that says it failed outweighs one that says it did not.
    fn said_success(&mut self, success: Option<bool>) {
        if self.success != Some(false) {
            self.success = success.or(self.success);
        }
    }

    /// What the kernel has counted, where the agent's own report says nothing. A cost of nothing for tokens is a cost that
    /// was not reported.
    fn usage(&mut self, metadata: Option<&Metadata>) {
        let Some(usage) = metadata.and_then(|all| all.get(USAGE_KEY)?.read::<Usage>().ok()) else { return };
        self.tokens = self.tokens.or(Some((usage.input_tokens, usage.output_tokens)));
        if usage.cost_usd > 0.0 {
            self.cost_usd = self.cost_usd.or(Some(usage.cost_usd));
        }
    }
}

/// Whether it is worth decoding for what it says of cost or confidence.
fn carries_extension(line: &[u8]) -> bool {
    [&b"cost-v1"[..], b"confidence-v1"].iter().any(|mark| line.windows(mark.len()).any(|window| window == *mark))
}

fn agent_text<S: serde::Serializer>(agent: &AgentName, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(agent.as_str())
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn state_text<S: serde::Serializer>(state: &TaskState, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(state_label(*state))
}
