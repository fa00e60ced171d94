//! `task get`, `list`, `cancel` and `subscribe`.

use std::time::Duration;

use anyhow::Context as _;
use serde_json::Value;
use switchboard_a2a::TaskId;
use tokio::io::{AsyncBufReadExt as _, BufReader};

use super::sending::sent;
use super::{id, produced, state};
use crate::commands::switchboard::{Switchboard, refused_with, told_by};
use crate::run::{Answer, Checked, Run, equal};

/// How long a subscription may take to begin.
const FIRST: Duration = Duration::from_secs(10);

pub(super) async fn run(run: &mut Run<'_>, switchboard: &Switchboard) {
    run.check("get", get(switchboard)).await;
    run.check("list", list(switchboard)).await;
    run.check("cancel", cancel(switchboard)).await;
    run.check("subscribe", subscribe(switchboard)).await;
    run.check("subscribe-ended", subscribe_ended(switchboard)).await;
    run.check("error-unknown-task", unknown_task(switchboard)).await;
    run.check("error-cancel-ended", cancel_ended(switchboard)).await;
}

/// Without its history, and with it.
async fn get(switchboard: &Switchboard) -> Checked {
    let task = sent(switchboard, &["echo done"]).await?;
    let again = switchboard.json("task get", &[&id(&task)?, "--history", "10"]).await?;
    equal((id(&again)?, &again["contextId"]), (id(&task)?, &task["contextId"]))?;
    equal((state(&again), produced(&again).as_str()), ("TASK_STATE_COMPLETED", "done"))?;
    equal(&again["history"][0]["parts"][0]["text"], &Value::from("echo done"))?;
    let bare = switchboard.json("task get", &[&id(&task)?]).await?;
    equal(bare["history"].as_array().map_or(0, Vec::len), 0)?;
    Ok(Answer::Given)
}

/// Of one conversation, all pages of it.
async fn list(switchboard: &Switchboard) -> Checked {
    let first = sent(switchboard, &["echo one"]).await?;
    let context = first["contextId"].as_str().context("the task has no contextId")?;
    let second = sent(switchboard, &["--context-id", context, "echo two"]).await?;
    let words = ["--context-id", context, "--page-size", "1", "--all"];
    let listed = match switchboard.json("task list", &words).await {
        Err(error) => return told_by(error),
        Ok(listed) => listed,
    };
    let tasks = listed["tasks"].as_array().context("there is no list")?;
    if tasks.is_empty() {
        return Ok(Answer::Broken);
    }
    let mut ids = tasks.iter().map(id).collect::<anyhow::Result<Vec<_>>>()?;
    let mut expected = vec![id(&first)?, id(&second)?];
    ids.sort();
    expected.sort();
    equal(ids, expected)?;
    Ok(Answer::Given)
}

async fn cancel(switchboard: &Switchboard) -> Checked {
    let task = sent(switchboard, &["--async", "wait"]).await?;
    let canceled = switchboard.json("task cancel", &[&id(&task)?]).await?;
    equal((id(&canceled)?, state(&canceled)), (id(&task)?, "TASK_STATE_CANCELED"))?;
    let now = switchboard.json("task get", &[&id(&task)?]).await?;
    equal(state(&now), "TASK_STATE_CANCELED")?;
    Ok(Answer::Given)
}

/// A task at work, which is canceled once the subscription has begun.
async fn subscribe(switchboard: &Switchboard) -> Checked {
    let task = id(&sent(switchboard, &["--async", "wait"]).await?)?;
    let mut watching = switchboard.command("task subscribe", &[&task, "--stream", "--debug"]).spawn()?;
    let output = watching.stdout.take().context("the command has no output")?;
    let mut lines = BufReader::new(output).lines();
    let trace = watching.stderr.take().context("the command has no standard error")?;
    let mut trace = BufReader::new(trace).lines();
    // Some servers tell nothing before something happens: the head of the response says that they listen.
    let listens = async {
        while let Ok(Some(line)) = trace.next_line().await {
            if line.contains("text/event-stream") && line.contains("content-type") {
                break;
            }
        }
    };
    let begun = tokio::time::timeout(FIRST, listens).await;
    tokio::spawn(async move { while let Ok(Some(_)) = trace.next_line().await {} });
    begun.context("the subscription does not begin")?;
    switchboard.json("task cancel", &[&task]).await?;
    let mut last = String::new();
    while let Some(line) = lines.next_line().await? {
        last = line;
    }
    anyhow::ensure!(watching.wait().await?.success(), "the subscription ended badly, with {last}");
    let last: Value = serde_json::from_str(&last)?;
    let told = ["statusUpdate", "task"].iter().find_map(|kind| last.get(kind));
    equal(told.map(state), Some("TASK_STATE_CANCELED"))?;
    Ok(Answer::Given)
}

/// No server lets one subscribe to it, so it is asked for.
async fn subscribe_ended(switchboard: &Switchboard) -> Checked {
    let task = sent(switchboard, &["echo done"]).await?;
    let told = switchboard.json("task subscribe", &[&id(&task)?]).await?;
    equal((id(&told)?, produced(&told).as_str()), (id(&task)?, "done"))?;
    Ok(Answer::Given)
}

async fn unknown_task(switchboard: &Switchboard) -> Checked {
    let unknown = TaskId::generate();
    for command in ["task get", "task cancel", "task subscribe", "task download"] {
        let answer = switchboard.json(command, &[unknown.as_str()]).await;
        refused_with(answer, &["TaskNotFoundError"]).with_context(|| command.to_owned())?;
    }
    Ok(Answer::Given)
}

async fn cancel_ended(switchboard: &Switchboard) -> Checked {
    let task = sent(switchboard, &["echo done"]).await?;
    refused_with(switchboard.json("task cancel", &[&id(&task)?]).await, &["TaskNotCancelableError"])
}
