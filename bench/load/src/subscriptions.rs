//! Opens streams that stay open, one connection each, and measures what the server's memory grew by.
//! The held tasks are canceled at the end, so that the server is left as it was.

use anyhow::Context;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::connection::Connection;
use crate::failure::Failure;
use crate::memory;
use crate::reply::{self, Event};
use crate::request::RequestWriter;
use crate::target::Target;

/// For a first frame, and for a cancel.
const PATIENCE: Duration = Duration::from_secs(10);
/// Lets allocators and buffers come to rest before memory is read.
const SETTLE: Duration = Duration::from_millis(500);
/// Opening all at once would measure the listener's backlog.
const OPENING_AT_ONCE: usize = 32;

pub(crate) struct Opened {
    pub(crate) streams: u64,
    pub(crate) before_kib: u64,
    pub(crate) after_kib: u64,
}

pub(crate) async fn run(target: &Target, streams: u64, pid: u32, one_task: bool) -> anyhow::Result<Opened> {
    let mut held = Vec::new();
    let shared = if one_task {
        let (connection, task) = open(target.clone(), None, 0).await?;
        held.push(connection);
        Some(task)
    } else {
        None
    };
    tokio::time::sleep(SETTLE).await;
    let before_kib = memory::resident_kib(pid)?;

    let mut tasks: Vec<String> = shared.iter().cloned().collect();
    let mut opening = JoinSet::new();
    for id in 1..=streams {
        if opening.len() >= OPENING_AT_ONCE {
            keep(opening.join_next().await, &mut held, &mut tasks, one_task)?;
        }
        opening.spawn(open(target.clone(), shared.clone(), id));
    }
    while !opening.is_empty() {
        keep(opening.join_next().await, &mut held, &mut tasks, one_task)?;
    }
    tokio::time::sleep(SETTLE).await;
    let after_kib = memory::resident_kib(pid)?;

    cancel(target, &tasks).await;
    drop(held);
    Ok(Opened { streams, before_kib, after_kib })
}

type Joined = Result<Result<(Connection, String), Failure>, tokio::task::JoinError>;

fn keep(
    joined: Option<Joined>,
    held: &mut Vec<Connection>,
    tasks: &mut Vec<String>,
    one_task: bool,
) -> anyhow::Result<()> {
    if let Some(joined) = joined {
        let (connection, task) = joined?.with_context(|| format!("after {} open streams", held.len()))?;
        held.push(connection);
        if !one_task {
            tasks.push(task);
        }
    }
    Ok(())
}

/// Opens one stream and reads its first frame; the connection must stay alive for the stream to stay open.
async fn open(target: Target, subscribe_to: Option<String>, id: u64) -> Result<(Connection, String), Failure> {
    let mut connection = Connection::open(&target).await?;
    let mut writer = RequestWriter::new(&target);
    let request = match &subscribe_to {
        Some(task) => writer.task("SubscribeToTask", id, task),
        None => writer.message("SendStreamingMessage", id, "hold", None),
    };
    let first = async {
        let mut events = connection.call_streaming(request).await?;
        let data = events.next().await?.ok_or(Failure::Missing("first frame"))?;
        let event: Event<'_> = reply::result(data, id)?;
        let of_task = event.task.map(|task| task.id);
        let task = of_task.or(event.status_update.map(|update| update.task_id));
        task.map(|id| id.into_owned()).ok_or(Failure::Missing("task in the first frame"))
    };
    let task = timeout(PATIENCE, first).await.unwrap_or(Err(Failure::Late(PATIENCE.as_secs())))?;
    Ok((connection, task))
}

async fn cancel(target: &Target, tasks: &[String]) {
    let Ok(mut connection) = Connection::open(target).await else {
        return;
    };
    let mut writer = RequestWriter::new(target);
    for (id, task) in (0u64..).zip(tasks) {
        // The measurement is over: a server that cannot cancel is no reason to lose it, and no reason to wait.
        if !matches!(timeout(PATIENCE, connection.call(writer.task("CancelTask", id, task))).await, Ok(Ok(_))) {
            return;
        }
    }
}
