//! Canceling a task.

use switchboard_a2a::{Error, TaskId};

use super::error::from_engine;
use super::operation::OperationCall;
use super::operation_result::{OperationResult, TaskContent, TaskResult};

/// The task once it is in a terminal state.
pub(super) async fn perform(call: &mut OperationCall<'_>, id: &TaskId) -> Result<OperationResult, Error> {
    let reading = call.state.engine.cancel(&call.address, &call.identity.caller, id).await.map_err(from_engine)?;
    let content = TaskContent::Read(reading);
    Ok(OperationResult::Task(TaskResult { id: id.clone(), history_length: None, content }))
}
