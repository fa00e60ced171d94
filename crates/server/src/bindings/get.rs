//! Reading one task.

use switchboard_a2a::{Error, TaskId};
use switchboard_engine::ReadWithin;

use super::error::from_engine;
use super::operation::{OperationCall, Reply};
use super::task::TaskForm;
use crate::response_budget::SMALL;

pub(super) async fn answer(
    call: &mut OperationCall<'_>,
    id: &TaskId,
    history_length: Option<u32>,
) -> Result<Reply, Error> {
    let style = call.style(TaskForm::Bare, history_length);
    let reserved = call.reserve(SMALL as u64).await?;
    let (engine, caller) = (&call.state.engine, &call.identity.caller);
    match engine.get_within(&call.address, caller, id, SMALL as u64).await.map_err(from_engine)? {
        ReadWithin::Task(reading) => {
            style.write(reading, &mut call.out)?;
            Ok(call.written(reserved))
        }
        ReadWithin::Larger(bytes) => {
            drop(reserved);
            Box::pin(call.render_stored(id, bytes, style)).await
        }
    }
}
