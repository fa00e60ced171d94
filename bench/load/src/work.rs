//! The kinds of work a run can consist of. Each returns how many units it did: requests, or events of a stream.

use crate::connection::Connection;
use crate::failure::Failure;
use crate::request::RequestWriter;
use crate::{get, list, send, stream};

pub(crate) enum Work {
    Send { text: String, webhook: Option<String> },
    Stream { text: String, chunks: u64 },
    Get { ids: Vec<String> },
    List { since: Option<String> },
}

impl Work {
    pub(crate) async fn perform(
        &self,
        connection: &mut Connection,
        writer: &mut RequestWriter,
        id: u64,
    ) -> Result<u64, Failure> {
        match self {
            Work::Send { text, webhook } => send::perform(connection, writer, id, text, webhook.as_deref()).await,
            Work::Stream { text, chunks } => stream::perform(connection, writer, id, text, *chunks).await,
            Work::Get { ids } => get::perform(connection, writer, id, ids).await,
            Work::List { since } => list::perform(connection, writer, id, since.as_deref()).await,
        }
    }
}
