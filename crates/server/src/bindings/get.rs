//! Reading one task.

use switchboard_a2a::{Error, TaskId};

use super::call::Call;
use super::error;
use super::task::{self, Form};

/// Writes the task.
pub(super) async fn answer(
    call: &Call<'_>,
    id: &TaskId,
    history_length: Option<u32>,
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    let reading = call.state.engine.get(&call.address, &call.identity.caller, id).await.map_err(error::of)?;
    task::write(call.dialect, Form::Bare, reading, history_length, out)
}
