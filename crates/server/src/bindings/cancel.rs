//! Canceling a task.

use switchboard_a2a::{Error, TaskId};

use super::error::from_engine;
use super::operation::{OperationCall, Reply};
use super::render;
use super::task::{TaskForm, TaskStyle};

/// Writes the task once it is in a terminal state.
pub(super) async fn answer(call: &mut OperationCall<'_>, id: &TaskId, out: &mut Vec<u8>) -> Result<Reply, Error> {
    let reading = call.state.engine.cancel(&call.address, &call.identity.caller, id).await.map_err(from_engine)?;
    let style = TaskStyle { form: TaskForm::Bare, history_length: None };
    render::task(call, id, style, reading, out).await
}
