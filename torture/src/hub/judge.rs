//! What must be true of the hub and the servers behind it when all of them are up again.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::HANG_GUARD;
use crate::calls::{self, TaskFacts};
use crate::compare::Problems;
use crate::http::Connection;
use crate::hub::client::Journal;

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(50);
/// States in which an agent works, or waits for an answer.
const LIVE: [&str; 3] = ["TASK_STATE_SUBMITTED", "TASK_STATE_WORKING", "TASK_STATE_INPUT_REQUIRED"];

#[derive(Default)]
pub(super) struct Verdict {
    pub(super) completed: usize,
    pub(super) problems: Problems,
}

pub(super) fn judge(hub: SocketAddr, remotes: &[SocketAddr], journal: &Journal) -> anyhow::Result<Verdict> {
    let mut verdict = Verdict::default();
    // What runs without an end, or waits for an answer that never comes, is ended here.
    let is_settled = until(|| {
        let mut connection = Connection::open(hub)?;
        for (task, _) in live(&mut connection)? {
            // One that ended meanwhile cannot be canceled, and that is as good.
            let _ = calls::cancel(&mut connection, "/a2a", &task.id)?;
        }
        Ok(live(&mut connection)?.is_empty())
    })?;
    let mut connection = Connection::open(hub)?;
    if !is_settled {
        let left: Vec<_> = live(&mut connection)?;
        verdict.problems.push(format!("the hub's tasks do not end: {left:?}"));
        return Ok(verdict);
    }
    for (id, told) in &journal.tasks {
        let now = match calls::get(&mut connection, told.path, id)? {
            Ok(now) => now,
            Err(refusal) => {
                verdict.problems.push(format!("task {id} was acknowledged and is gone: {refusal:?}"));
                continue;
            }
        };
        verdict.completed += usize::from(now.state == "TASK_STATE_COMPLETED");
        if told.facts.is_terminal() && now != told.facts {
            verdict.problems.push(format!("task {id} was {:?} and is {now:?}", told.facts));
        }
    }
    if verdict.completed == 0 {
        verdict.problems.push("no task was completed, so nothing is shown".to_owned());
    }
    for remote in remotes {
        no_orphans(*remote, &mut verdict.problems)?;
        once(*remote, &mut verdict.problems)?;
    }
    Ok(verdict)
}

/// The hub owes a cancellation for what it ended without the agent; it is carried out in a while.
fn no_orphans(remote: SocketAddr, problems: &mut Problems) -> anyhow::Result<()> {
    let is_quiet = until(|| Ok(live(&mut Connection::open(remote)?)?.is_empty()))?;
    if !is_quiet {
        let left = live(&mut Connection::open(remote)?)?;
        problems.push(format!("{} tasks run at {remote} for none of the hub's: {left:?}", left.len()));
    }
    Ok(())
}

/// A message of the hub has an id of its own, whatever is repeated: two tasks with the same one are one too many.
fn once(remote: SocketAddr, problems: &mut Problems) -> anyhow::Result<()> {
    let mut tasks: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (task, _) in calls::list(&mut Connection::open(remote)?, &json!({}))? {
        for message in task.messages {
            tasks.entry(message).or_default().push(task.id.clone());
        }
    }
    for (message, tasks) in tasks.iter().filter(|(_, tasks)| tasks.len() > 1) {
        problems.push(format!("message {message} was worked on {} times at {remote}: {tasks:?}", tasks.len()));
    }
    Ok(())
}

fn live(connection: &mut Connection) -> std::io::Result<Vec<(TaskFacts, String)>> {
    let mut found = Vec::new();
    for state in LIVE {
        found.extend(calls::list(connection, &json!({ "status": state }))?);
    }
    Ok(found)
}

/// Whether it comes true before the hang guard is over. There is nothing to be told by, so this asks again and again.
fn until(mut is_true: impl FnMut() -> std::io::Result<bool>) -> anyhow::Result<bool> {
    let start = Instant::now();
    while start.elapsed() < HANG_GUARD {
        if is_true()? {
            return Ok(true);
        }
        std::thread::sleep(PAUSE);
    }
    Ok(false)
}
