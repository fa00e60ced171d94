//! The outcome of a task: its terminal event, with what its first message asked for and what its work has cost. It is not
//! stored anywhere: every reader of the log computes the same one.

use serde::Serialize;
use switchboard_a2a::{TaskState, TaskStatusUpdate, Timestamp};
use switchboard_engine::ids::TaskKey;
use switchboard_engine::store::{EventRow, StoreError, TaskIdentity};
use switchboard_engine::{AgentName, CallerId, state_label};

use super::reported::Reported;
use crate::feed::TaskOrigin;
use crate::hub::HubState;

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
    /// From the first message until work began; absent if the log does not say so soon.
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
    pub(crate) async fn read(
        hub: &HubState,
        key: TaskKey,
        task: &TaskIdentity,
        origin: &TaskOrigin,
        row: &EventRow,
        end: &TaskStatusUpdate,
    ) -> Result<Self, StoreError> {
        let said = Reported::read(hub, key, task, row, end).await?;
        Ok(Self::new(hub, task, origin, end, said))
    }

    /// Whether the agent has failed. A task that was canceled says nothing of it.
    pub(crate) fn has_failed(&self) -> bool {
        !self.success && self.state != TaskState::Canceled
    }

    /// The outcome of a task by what was reported of it.
    pub(crate) fn new(
        hub: &HubState,
        task: &TaskIdentity,
        origin: &TaskOrigin,
        end: &TaskStatusUpdate,
        said: Reported,
    ) -> Self {
        let at = end.status.timestamp.unwrap_or(origin.received_at);
        let since = |time: Timestamp| u64::try_from(time.0.saturating_sub(origin.received_at.0)).unwrap_or(0);
        let tokens = said.tokens;
        let estimate = || hub.pricing.cost(said.model.as_deref(), tokens?.0, tokens?.1);
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

fn agent_text<S: serde::Serializer>(agent: &AgentName, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(agent.as_str())
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn state_text<S: serde::Serializer>(state: &TaskState, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(state_label(*state))
}
