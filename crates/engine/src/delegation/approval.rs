//! Questions that a task token, or an agent that hands on the words of strangers, may not answer. What a program has called
//! may ask it something, and it answers; but where the child asks for an approval, a program would let another do what no
//! person has allowed. That is for the people who see the child: its operators.
//!
//! It is checked by the append that would answer, because the question may be asked while the message is on its way.

use serde::Deserialize;
use switchboard_a2a::{Message, TaskState};

use super::refusal::{DelegationRefused, RefusalKind};
use crate::call::Called;
use crate::live_task::Core;
use crate::store::TaskIdentity;

/// The member by which the data of a question names its approval, here and on other servers.
#[derive(Deserialize)]
struct ApprovalData {
    #[serde(rename = "approvalId")]
    _approval_id: serde::de::IgnoredAny,
}

impl Called {
    /// The same, but no answer is an approval: for an agent that hands on what somebody else than its caller has written.
    #[must_use]
    pub fn without_approvals(mut self) -> Self {
        self.approves = false;
        self
    }

    /// Whether the child waits for an approval, which [`Self::answer`] without approvals cannot be.
    pub fn asks_approval(&self) -> bool {
        check_no_approval(&self.live.task, &self.live.core.lock()).is_err()
    }
}

/// Refuses a message to a task that waits for an approval.
pub(crate) fn check_no_approval(task: &TaskIdentity, core: &Core) -> Result<(), DelegationRefused> {
    let question = core.fold.task.status.message.as_ref();
    let asks = match core.row.state {
        TaskState::AuthRequired => true,
        TaskState::InputRequired => core.fold.review().is_some() || question.is_some_and(names_approval),
        _ => false,
    };
    if !asks {
        return Ok(());
    }
    let problem = format!(
        "task {} of agent {} waits for an approval, which no task token gives: an operator answers it, or it is canceled",
        task.id, task.agent
    );
    Err(DelegationRefused::of_task(RefusalKind::NotAllowed, &task.agent, problem))
}

fn names_approval(question: &Message) -> bool {
    question.parts.iter().filter_map(switchboard_a2a::Part::as_data).any(|data| data.read::<ApprovalData>().is_ok())
}
