//! Programs and servers that are killed.

use std::time::{Duration, Instant};

use anyhow::Context;
use serde_json::json;
use switchboard_a2a::{Task, TaskId, TaskState};

use super::approvals::approval;
use super::cancel::begin_long_tool;
use super::{LONG_TOOL, say_yes};
use crate::caller::{Caller, answer, answer_with, has_answered, is, said, text, within};
use crate::fixture::{Fixture, HANG_GUARD};
use crate::processes;

/// The program dies while a tool of it runs: the task fails and says why, nothing is left, and the conversation goes on.
pub(super) async fn child(fixture: &mut Fixture<'_>) -> anyhow::Result<()> {
    let caller = fixture.caller()?;
    let task = begin_long_tool(fixture, &caller, LONG_TOOL).await?;
    processes::kill(fixture.program()?.pid)?;
    let task =
        tokio::time::timeout(HANG_GUARD, caller.settled(&task.id)).await.context("the task has not noticed")??;
    is(&task, TaskState::Failed)?;
    anyhow::ensure!(said(&task).contains("killed") || said(&task).contains("signal"), "it says: {}", said(&task));
    fixture.quiet().await?;
    let task = caller.send(within(&task.context_id, "[[say here again]]")).await?;
    has_answered(&say_yes(&caller, task).await?, "here again")
}

/// The server dies while a tool runs: the next one ends what is left of it and takes the task up again.
pub(super) async fn server_at_work(fixture: &mut Fixture<'_>) -> anyhow::Result<()> {
    let prompt = format!("{LONG_TOOL} [[say done at last]]");
    let task = begin_long_tool(fixture, &fixture.caller()?, &prompt).await?;
    kill_server(fixture).await?;
    let task = fixture.caller()?.settled(&task.id).await?;
    has_answered(&task, "done at last")
}

/// The server dies while a question is open, and again while the tool runs: each time the next one asks anew, and takes no
/// answer that was meant for the question before.
pub(super) async fn server_that_asks(fixture: &mut Fixture<'_>) -> anyhow::Result<()> {
    let prompt = format!("{LONG_TOOL} [[say done at last]]");
    let task = fixture.caller()?.send(text(&prompt)).await?;
    let old = approval(&task)?;
    kill_server(fixture).await?;

    let caller = fixture.caller()?;
    let task = asked_anew(&caller, &task.id, &old).await?;
    let new = approval(&task)?;
    let late = answer_with(&task, &json!({ "approvalId": old, "decision": "allow" }))?;
    let task = caller.send(late).await?;
    anyhow::ensure!(approval(&task)? == new && said(&task).contains("has expired"), "it says: {}", said(&task));
    anyhow::ensure!(
        fixture.read("started").is_empty() && !fixture.project.join("started").exists(),
        "the tool was run"
    );
    caller.begin(answer(&task, "y")).await?;
    fixture.written("started").await?;
    kill_server(fixture).await?;

    let caller = fixture.caller()?;
    let task = asked_anew(&caller, &task.id, &new).await?;
    has_answered(&say_yes(&caller, task).await?, "done at last")
}

/// Kills the server and starts another; what the first had started must be gone by then.
async fn kill_server(fixture: &mut Fixture<'_>) -> anyhow::Result<()> {
    let before: Vec<i32> = fixture.processes().iter().map(|process| process.pid).collect();
    anyhow::ensure!(!before.is_empty(), "the server has started nothing");
    fixture.restart().await?;
    let left: Vec<_> = fixture.processes().into_iter().filter(|process| before.contains(&process.pid)).collect();
    anyhow::ensure!(left.is_empty(), "of the killed server there still are {left:?}");
    Ok(())
}

/// Waits until a task asks again.
async fn asked_anew(caller: &Caller, id: &TaskId, old: &str) -> anyhow::Result<Task> {
    let until = Instant::now() + HANG_GUARD;
    loop {
        let task = caller.settled(id).await?;
        if approval(&task)? != old {
            return Ok(task);
        }
        anyhow::ensure!(Instant::now() < until, "it still asks as before");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
