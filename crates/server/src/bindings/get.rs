//! Reading one task.

use switchboard_a2a::{Error, TaskId};
use switchboard_engine::ReadWithin;

use super::call::{Call, Outcome};
use super::task::{self, Form};
use super::{error, large};
use crate::responses::SMALL;

/// Writes the task.
pub(super) async fn answer(
    call: &mut Call<'_>,
    id: &TaskId,
    history_length: Option<u32>,
    out: &mut Vec<u8>,
) -> Result<Outcome, Error> {
    let reserved = call.reserve(SMALL as u64).await?;
    let (engine, caller) = (&call.state.engine, &call.identity.caller);
    match engine.get_within(&call.address, caller, id, SMALL as u64).await.map_err(error::of)? {
        ReadWithin::Task(reading) => {
            task::write(call.wire(), Form::Bare, reading, history_length, out)?;
            Ok(large::written(call, reserved, out))
        }
        ReadWithin::Larger(bytes) => {
            drop(reserved);
            Box::pin(large::task(call, id, bytes, history_length, out)).await
        }
    }
}
