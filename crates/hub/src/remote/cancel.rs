//! Cancels the remote task of a task that is being canceled here. What the remote server makes of it is told like
//! everything else; a server that does not answer, or refuses, is asked again until the kernel's patience ends.

use std::time::Duration;

use switchboard_a2a::{ErrorKind, Task, TaskId};
use switchboard_client::{CallContext, ClientError};

use super::RemoteParts;
use super::failure_text::failure_text;
use crate::registry::{BreakerOpen, BreakerPermit, RequestOutcome, RequestSource};

const RETRY: Duration = Duration::from_secs(1);

/// Why it is not known that a remote task has ended.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CancelError {
    /// It was not asked.
    #[error(transparent)]
    Open(#[from] BreakerOpen),
    #[error(transparent)]
    Refused(#[from] ClientError),
}

impl CancelError {
    /// What those are told who see the task: no addresses, and no names of variables.
    pub(crate) fn caller_text(&self) -> String {
        match self {
            Self::Open(_) => "its circuit breaker is open".to_owned(),
            Self::Refused(error) => failure_text(error),
        }
    }
}

impl RemoteParts {
    /// Asks once. Whether it has ended by now, one way or another, so that nothing is owed.
    pub(crate) async fn cancel_once(
        &self,
        context: &CallContext,
        here: &TaskId,
        remote: &TaskId,
    ) -> Result<bool, CancelError> {
        let permit = self.breaker.allow()?;
        let canceled = self.recorded(&permit, here, self.client.cancel(context, remote, None).await);
        if let Some(has_ended) = has_ended(&canceled) {
            return Ok(has_ended);
        }
        // A refusal alone says nothing of the task: the agent may refuse whom it does not know, or cancel nothing at all.
        if matches!(canceled, Err(ClientError::Agent(_)))
            && let Ok(permit) = self.breaker.allow()
        {
            let now = self.recorded(&permit, here, self.client.get(context, remote, Some(0)).await);
            if has_ended(&now) == Some(true) {
                return Ok(true);
            }
        }
        match canceled {
            Ok(_) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Asks until there is an answer.
    pub(super) async fn cancel_remote(&self, context: CallContext, here: TaskId, remote: TaskId) {
        while let Err(error) = self.cancel_once(&context, &here, &remote).await {
            tracing::debug!(task = %here, %error, "a remote task is canceled again");
            self.clock.sleep(RETRY).await;
        }
    }

    /// Records a call with the breaker.
    pub(crate) fn recorded<T>(
        &self,
        permit: &BreakerPermit<'_>,
        task: &TaskId,
        result: Result<T, ClientError>,
    ) -> Result<T, ClientError> {
        permit.record(RequestSource::Task(task), RequestOutcome::of(&result));
        result
    }
}

/// Whether a remote task has ended, if the answer says.
fn has_ended(answer: &Result<Task, ClientError>) -> Option<bool> {
    match answer {
        Ok(task) => Some(task.status.state.is_terminal()),
        Err(error) if error.error_kind() == Some(ErrorKind::TaskNotFound) => Some(true),
        Err(_) => None,
    }
}
