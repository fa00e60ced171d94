//! What must be true of the hub and the servers behind it when all of them are up again.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::HANG_GUARD;
use crate::calls::{self, TaskFacts};
use crate::compare::Problems;
use crate::http::Connection;
use crate::hub::client::{Journal, PROBE};
use crate::hub::ends::{Ends, There};
use crate::hub::tally::Tally;

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(50);
/// States in which an agent works, or waits for an answer.
const LIVE: [&str; 3] = ["TASK_STATE_SUBMITTED", "TASK_STATE_WORKING", "TASK_STATE_INPUT_REQUIRED"];

#[derive(Default)]
pub(super) struct Verdict {
    pub(super) tally: Tally,
    pub(super) problems: Problems,
}

/// A server behind the hub whose tasks outlive it.
pub(super) struct Remote {
    /// What the hub calls its agent.
    pub(super) name: &'static str,
    /// Where the agent is at the hub.
    pub(super) path: &'static str,
    pub(super) address: SocketAddr,
    /// It recognises a repetition.
    pub(super) is_keyed: bool,
    /// It can be asked for its tasks.
    pub(super) lists_tasks: bool,
}

pub(super) fn judge(hub: SocketAddr, remotes: &[Remote], journal: &Journal) -> anyhow::Result<Verdict> {
    let mut verdict = Verdict::default();
    verdict.problems.extend(ended_by_themselves(hub)?);
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
    acknowledged(&mut connection, journal, &mut verdict.problems)?;
    let here = Ends::read(&mut connection, remotes.iter().map(|remote| remote.path))?;
    for remote in remotes {
        verdict.problems.extend(no_orphans(remote, &here)?);
        let there = There::read(&mut Connection::open(remote.address)?)?;
        verdict.problems.extend(there.worked_on_twice(remote.name));
        verdict.problems.extend(here.compare(remote, &there, &journal.canceled));
    }
    verdict.problems.extend(here.worked_on_twice());
    verdict.tally = here.tally();
    if verdict.tally.completed() == 0 {
        verdict.problems.push("no task was completed, so nothing is shown".to_owned());
    }
    Ok(verdict)
}

/// The hub follows its tasks to their ends without being asked: a cancellation would hide one that it has forgotten.
fn ended_by_themselves(hub: SocketAddr) -> anyhow::Result<Option<String>> {
    let mut left = Vec::new();
    let have_ended = until(|| {
        left = live(&mut Connection::open(hub)?)?;
        left.retain(|(task, text)| ends_by_itself(&task.state, text));
        Ok(left.is_empty())
    })?;
    Ok((!have_ended).then(|| format!("the hub's tasks do not end by themselves: {left:?}")))
}

/// Whether a live task needs nobody for its end.
fn ends_by_itself(state: &str, text: &str) -> bool {
    let waits = text == PROBE.ask && state == "TASK_STATE_INPUT_REQUIRED";
    text != PROBE.hold && !waits
}

/// Whatever the hub acknowledged is there, and an end stays as it was.
pub(super) fn acknowledged(
    connection: &mut Connection,
    journal: &Journal,
    problems: &mut Problems,
) -> anyhow::Result<()> {
    for (id, told) in &journal.tasks {
        match calls::get(connection, told.path, id)? {
            Ok(now) if told.facts.is_terminal() && now != told.facts => {
                problems.push(format!("task {id} was {:?} and is {now:?}", told.facts));
            }
            Ok(_) => {}
            Err(refusal) => problems.push(format!("task {id} was acknowledged and is gone: {refusal:?}")),
        }
    }
    Ok(())
}

/// The hub owes a cancellation for what it ended without the agent; it is carried out in a while. Only what cannot be found
/// may go on, and the task here says so.
fn no_orphans(remote: &Remote, here: &Ends) -> anyhow::Result<Problems> {
    let orphans = || -> std::io::Result<Vec<TaskFacts>> {
        let live = live(&mut Connection::open(remote.address)?)?.into_iter().map(|(task, _)| task);
        Ok(live.filter(|task| remote.lists_tasks || here.names(&task.id)).collect())
    };
    let is_quiet = until(|| Ok(orphans()?.is_empty()))?;
    let left = if is_quiet { Vec::new() } else { orphans()? };
    Ok(left.iter().map(|task| format!("{} still works on {task:?}, which has ended here", remote.name)).collect())
}

pub(super) fn live(connection: &mut Connection) -> std::io::Result<Vec<(TaskFacts, String)>> {
    let mut found = Vec::new();
    for state in LIVE {
        found.extend(calls::list(connection, &json!({ "status": state }))?);
    }
    Ok(found)
}

/// Whether it comes true before the hang guard is over. There is nothing to be told by, so this asks again and again.
pub(super) fn until(mut is_true: impl FnMut() -> std::io::Result<bool>) -> anyhow::Result<bool> {
    let start = Instant::now();
    while start.elapsed() < HANG_GUARD {
        if is_true()? {
            return Ok(true);
        }
        std::thread::sleep(PAUSE);
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_work_without_an_end_and_open_questions_wait_for_the_judge() {
        let (works, asks) = ("TASK_STATE_WORKING", "TASK_STATE_INPUT_REQUIRED");
        for (state, text, expected) in [
            (works, PROBE.hello, true),
            (works, PROBE.sleep, true),
            (works, PROBE.stream, true),
            (works, PROBE.ask, true),
            (asks, PROBE.ask, false),
            (works, PROBE.hold, false),
        ] {
            assert_eq!(ends_by_itself(state, text), expected, "{state} {text}");
        }
    }
}
