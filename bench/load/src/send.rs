//! SendMessage, blocking: the reply is the finished task.

use crate::connection::Connection;
use crate::failure::Failure;
use crate::reply::{self, Event};
use crate::request::RequestWriter;

pub(crate) async fn perform(
    connection: &mut Connection,
    writer: &mut RequestWriter,
    id: u64,
    text: &str,
    webhook: Option<&str>,
) -> Result<u64, Failure> {
    let body = connection.call(writer.message("SendMessage", id, text, webhook)).await?;
    let event: Event<'_> = reply::result(&body, id)?;
    event.task.ok_or(Failure::Missing("task"))?.check_finished()?;
    Ok(1)
}
