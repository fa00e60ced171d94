//! Reading one task.

use switchboard_a2a::{Error, TaskId};
use switchboard_engine::ReadWithin;

use super::error::from_engine;
use super::operation::{OperationCall, Reply};
use super::render;
use super::task::{self, TaskForm, TaskStyle};
use crate::response_budget::SMALL;

pub(super) async fn answer(
    call: &mut OperationCall<'_>,
    id: &TaskId,
    history_length: Option<u32>,
    out: &mut Vec<u8>,
) -> Result<Reply, Error> {
    let style = TaskStyle { form: TaskForm::Bare, history_length };
    let reserved = call.reserve(SMALL as u64).await?;
    let (engine, caller) = (&call.state.engine, &call.identity.caller);
    match engine.get_within(&call.address, caller, id, SMALL as u64).await.map_err(from_engine)? {
        ReadWithin::Task(reading) => {
            task::write(call.wire(), style, reading, out)?;
            Ok(render::written(call, reserved, out))
        }
        ReadWithin::Larger(bytes) => {
            drop(reserved);
            Box::pin(render::large_task(call, id, bytes, style, out)).await
        }
    }
}
