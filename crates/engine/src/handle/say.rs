//! A status as another server has it: for agents that relay what a task elsewhere does.

use switchboard_a2a::{Json, Message, Metadata, Role, TaskState};

use super::{Stopped, TaskHandle, text_bytes};
use crate::reason::{REASON_KEY, Reason};

impl TaskHandle {
    /// Reports a status with a message of any parts and metadata, in any state but SUBMITTED. An interrupted or terminal
    /// one is committed when this returns; the agent returns after a question, and the answer starts a new run.
    ///
    /// Unlike [`Self::complete`] it may end the task in every way, COMPLETED and CANCELED too, after a cancellation was
    /// observed: what the other server says has happened, and the canceler is told so. Only a question cannot be asked
    /// any more then.
    ///
    /// An end that is not COMPLETED has a reason. If the metadata name none, it is `agent_error`, `rejected`, or who
    /// canceled: `canceled_by_caller` if the caller did, else `canceled_by_agent`.
    pub async fn say(
        &self,
        state: TaskState,
        message: Option<Message>,
        metadata: Option<Metadata>,
    ) -> Result<(), Stopped> {
        let message = message.map(|message| Message { role: Role::Agent, ..message });
        self.wait_for_buffer(message.as_ref().map_or(0, |message| text_bytes(&message.parts))).await?;
        let mark = {
            let mut core = self.live.core.lock();
            self.check_run(&core)?;
            let stop = core.output.stop;
            if stop.is_some() && state.is_interrupted() {
                return Err(core.observe_stop());
            }
            let reason = match state {
                TaskState::Failed => Some(Reason::AgentError),
                TaskState::Rejected => Some(Reason::Rejected),
                TaskState::Canceled if stop == Some(Reason::CanceledByCaller) => stop,
                TaskState::Canceled => Some(Reason::CanceledByAgent),
                _ => None,
            };
            self.push_status_of_run(&mut core, state, message, with_reason(metadata, reason))?
        };
        match state.is_interrupted() || state.is_terminal() {
            true => self.committed(mark).await,
            false => Ok(()),
        }
    }
}

fn with_reason(metadata: Option<Metadata>, reason: Option<Reason>) -> Option<Metadata> {
    let Some(reason) = reason else { return metadata };
    let mut metadata = metadata.unwrap_or_default();
    if metadata.get(REASON_KEY).is_none()
        && let Ok(reason) = Json::from_serialize(reason.as_str())
    {
        metadata.insert(REASON_KEY, reason);
    }
    Some(metadata)
}
