//! GetTask: the task asked for, finished.

use crate::connection::Connection;
use crate::failure::Failure;
use crate::reply::{self, Task};
use crate::request::RequestWriter;

pub(crate) async fn perform(
    connection: &mut Connection,
    writer: &mut RequestWriter,
    id: u64,
    ids: &[String],
) -> Result<u64, Failure> {
    let asked = ids.get(spread(id, ids.len())).ok_or(Failure::Missing("task to ask for"))?;
    let body = connection.call(writer.task("GetTask", id, asked)).await?;
    let task: Task<'_> = reply::result(&body, id)?;
    if task.id != asked.as_str() {
        return Err(Failure::Task { expected: asked.clone(), found: task.id.into_owned() });
    }
    task.check_finished()?;
    Ok(1)
}

/// A cheap, repeatable walk over the list that no cache can foresee: the request's number through a bit mixer.
fn spread(id: u64, length: usize) -> usize {
    let mut mixed = id.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((mixed ^ (mixed >> 31)) % length.max(1) as u64) as usize
}
