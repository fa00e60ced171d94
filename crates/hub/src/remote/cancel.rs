//! Cancels the remote task of a task that is being canceled here. What the remote server makes of it is told like
//! everything else; a server that does not answer is asked again until the kernel's patience ends.

use std::time::Duration;

use switchboard_a2a::TaskId;
use switchboard_client::{CallContext, ClientError};

use super::RemoteParts;
use super::away::is_away;
use crate::registry::{RequestOutcome, RequestSource};

const RETRY: Duration = Duration::from_secs(1);

impl RemoteParts {
    /// Asks once. Whether it has ended by now, one way or another, so that nothing is owed.
    pub(crate) async fn cancel_once(
        &self,
        context: &CallContext,
        here: &TaskId,
        remote: &TaskId,
    ) -> Result<bool, ClientError> {
        let answer = self.client.cancel(context, remote, None).await;
        self.breaker.record(RequestSource::Task(here), RequestOutcome::of(&answer));
        match answer {
            Ok(task) => Ok(task.status.state.is_terminal()),
            Err(error) if is_away(&error) => Err(error),
            // It cannot be canceled, because it has ended, is not known any more, or never can.
            Err(error) => {
                tracing::debug!(task = %here, %error, "a remote task was not canceled");
                Ok(true)
            }
        }
    }

    /// Asks until there is an answer.
    pub(super) async fn cancel_remote(&self, context: CallContext, here: TaskId, remote: TaskId) {
        while let Err(error) = self.cancel_once(&context, &here, &remote).await {
            tracing::debug!(task = %here, %error, "a remote task is canceled again");
            self.clock.sleep(RETRY).await;
        }
    }
}
