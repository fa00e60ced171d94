//! Creates tasks, for the measurements that need a store with something in it: finished ones, or with another text ones
//! that go on or wait.

use anyhow::Context;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

use crate::connection::Connection;
use crate::failure::Failure;
use crate::reply::{self, Event};
use crate::request::RequestWriter;
use crate::target::Target;

/// A server slower than 100 tasks a second is not filled further.
const LONGEST_PER_TASK: Duration = Duration::from_millis(10);

/// The text whose tasks must be finished when they are answered.
pub(crate) const FINISHES: &str = "hello";

pub(crate) struct Filled {
    pub(crate) ids: Vec<String>,
    pub(crate) elapsed: Duration,
}

/// What each message is.
#[derive(Clone)]
pub(crate) struct Filling {
    pub(crate) text: String,
    /// Answered as soon as the task has begun.
    pub(crate) immediately: bool,
}

impl Filling {
    /// A task that is finished when it is answered.
    pub(crate) fn finished() -> Self {
        Self { text: FINISHES.to_owned(), immediately: false }
    }
}

pub(crate) async fn run(target: &Target, filling: Filling, connections: u32, tasks: u64) -> anyhow::Result<Filled> {
    let start = Instant::now();
    let limit = Duration::from_secs(10) + LONGEST_PER_TASK * u32::try_from(tasks).unwrap_or(u32::MAX);
    let remaining = Arc::new(AtomicU64::new(tasks));
    let mut workers = JoinSet::new();
    for index in 0..u64::from(connections).min(tasks) {
        let connection = Connection::open(target).await.with_context(|| format!("no server at {}", target.address))?;
        let first_id = index << 32;
        workers.spawn(worker(target.clone(), filling.clone(), connection, first_id, Arc::clone(&remaining)));
    }
    let mut ids = Vec::with_capacity(tasks as usize);
    let collect = async {
        while let Some(created) = workers.join_next().await {
            ids.extend(created??);
        }
        anyhow::Ok(())
    };
    tokio::time::timeout(limit, collect).await.with_context(|| format!("{tasks} tasks took over {limit:?}"))??;
    Ok(Filled { ids, elapsed: start.elapsed() })
}

async fn worker(
    target: Target,
    filling: Filling,
    mut connection: Connection,
    first_id: u64,
    remaining: Arc<AtomicU64>,
) -> Result<Vec<String>, Failure> {
    let mut writer = RequestWriter::new(&target);
    let mut ids = Vec::new();
    let mut id = first_id;
    while remaining.try_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok() {
        id += 1;
        let request = if filling.immediately {
            writer.immediate_message(id, &filling.text)
        } else {
            writer.message("SendMessage", id, &filling.text, None)
        };
        let body = connection.call(request).await?;
        let event: Event<'_> = reply::result(&body, id)?;
        let task = event.task.ok_or(Failure::Missing("task"))?;
        if filling.text == FINISHES {
            task.check_finished()?;
        }
        ids.push(task.id.into_owned());
    }
    Ok(ids)
}
