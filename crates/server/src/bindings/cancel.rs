//! Stopping a task.

use switchboard_a2a::{Error, TaskId};

use super::call::{Call, Outcome};
use super::task::Form;
use super::{error, large};

/// Writes the task once it has ended.
pub(super) async fn answer(call: &mut Call<'_>, id: &TaskId, out: &mut Vec<u8>) -> Result<Outcome, Error> {
    let reading = call.state.engine.cancel(&call.address, &call.identity.caller, id).await.map_err(error::of)?;
    large::outcome(call, id, Form::Bare, reading, None, out).await
}
