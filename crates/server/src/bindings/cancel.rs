//! Canceling a task.

use switchboard_a2a::{Error, TaskId};

use super::error::from_engine;
use super::operation::{OperationCall, Reply};
use super::task::TaskForm;

/// Writes the task once it is in a terminal state.
pub(super) async fn answer(call: &mut OperationCall<'_>, id: &TaskId) -> Result<Reply, Error> {
    let reading = call.state.engine.cancel(&call.address, &call.identity.caller, id).await.map_err(from_engine)?;
    call.render(id, call.style(TaskForm::Bare, None), reading).await
}
