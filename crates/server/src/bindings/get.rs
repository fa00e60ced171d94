//! Reading one task.

use switchboard_a2a::{Error, TaskId};
use switchboard_engine::ReadWithin;

use super::error::from_engine;
use super::operation::{OperationCall, Reply};
use super::render;
use super::task::{self, TaskForm};
use crate::response_budget::SMALL;

/// Writes the task.
pub(super) async fn answer(
    call: &mut OperationCall<'_>,
    id: &TaskId,
    history_length: Option<u32>,
    out: &mut Vec<u8>,
) -> Result<Reply, Error> {
    let reserved = call.reserve(SMALL as u64).await?;
    let (engine, caller) = (&call.state.engine, &call.identity.caller);
    match engine.get_within(&call.address, caller, id, SMALL as u64).await.map_err(from_engine)? {
        ReadWithin::Task(reading) => {
            task::write(call.wire(), TaskForm::Bare, reading, history_length, out)?;
            Ok(render::written(call, reserved, out))
        }
        ReadWithin::Larger(bytes) => {
            drop(reserved);
            Box::pin(render::task(call, id, bytes, history_length, out)).await
        }
    }
}
