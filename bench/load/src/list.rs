//! ListTasks: the first page of 50 and the exact total.

use crate::connection::Connection;
use crate::failure::Failure;
use crate::reply::{self, Page};
use crate::request::RequestWriter;

const PAGE_SIZE: usize = 50;

pub(crate) async fn perform(
    connection: &mut Connection,
    writer: &mut RequestWriter,
    id: u64,
    since: Option<&str>,
) -> Result<u64, Failure> {
    let body = connection.call(writer.list(id, PAGE_SIZE, since)).await?;
    let page: Page = reply::result(&body, id)?;
    let expected = page.total_size.min(PAGE_SIZE as u64);
    if page.tasks.len() as u64 != expected {
        return Err(Failure::Page { tasks: page.tasks.len(), total: page.total_size });
    }
    Ok(1)
}
