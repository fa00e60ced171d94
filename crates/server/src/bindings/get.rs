//! Reading one task.

use switchboard_a2a::{Error, TaskId};
use switchboard_engine::ReadWithin;

use super::error::from_engine;
use super::operation::OperationCall;
use super::operation_result::{OperationResult, TaskContent, TaskResult};
use crate::response_budget::SMALL;

/// Reads a small task at once; of a large one only its size.
pub(super) async fn perform(
    call: &mut OperationCall<'_>,
    id: &TaskId,
    history_length: Option<u32>,
) -> Result<OperationResult, Error> {
    let reserved = call.reserve(SMALL as u64).await?;
    let (engine, caller) = (&call.state.engine, &call.identity.caller);
    let content = match engine.get_within(&call.address, caller, id, SMALL as u64).await.map_err(from_engine)? {
        ReadWithin::Task(reading) => TaskContent::Reserved(reading, reserved),
        ReadWithin::Larger(bytes) => TaskContent::Stored(bytes),
    };
    Ok(OperationResult::Task(TaskResult { id: id.clone(), history_length, content }))
}
