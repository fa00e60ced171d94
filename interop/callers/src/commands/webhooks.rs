//! `task push-config`: of a task that waits for an answer, so that only a webhook on this machine lives to see what comes
//! of it.

use serde_json::Value;

use super::id;
use super::sending::sent;
use crate::commands::switchboard::{Switchboard, TOKEN, told_by};
use crate::receiver::Receiver;
use crate::run::{Answer, Checked, Run, equal};

/// An address that no host has: it is reserved for documentation.
const ADDRESS: &str = "https://192.0.2.1/hook";

pub(super) async fn run(run: &mut Run<'_>, switchboard: &Switchboard) {
    run.check("webhook-set", set(switchboard)).await;
    run.check("webhook-get", get(switchboard)).await;
    run.check("webhook-list", list(switchboard)).await;
    run.check("webhook-delete", delete(switchboard)).await;
    run.check("webhook-delivered", delivered(switchboard)).await;
}

/// Sets the webhook `one` of a new task that waits, and gives back the task's id.
async fn hooked(switchboard: &Switchboard, url: &str) -> anyhow::Result<(String, Value)> {
    let task = id(&sent(switchboard, &["ask"]).await?)?;
    let words = [task.as_str(), "--url", url, "--id", "one", "--token-env", TOKEN.0];
    let config = switchboard.json("task push-config set", &words).await?;
    Ok((task, config))
}

async fn set(switchboard: &Switchboard) -> Checked {
    let (task, config) = match hooked(switchboard, ADDRESS).await {
        Err(error) => return told_by(error),
        Ok(hooked) => hooked,
    };
    expect(&config, &task)?;
    Ok(Answer::Given)
}

fn expect(config: &Value, task: &str) -> anyhow::Result<()> {
    equal(&config["url"], &Value::from(ADDRESS))?;
    equal((&config["id"], &config["taskId"]), (&Value::from("one"), &Value::from(task)))
}

async fn get(switchboard: &Switchboard) -> Checked {
    let (task, _) = hooked(switchboard, ADDRESS).await?;
    match switchboard.json("task push-config get", &[&task, "one"]).await {
        Err(error) => return told_by(error),
        Ok(config) => expect(&config, &task)?,
    }
    Ok(Answer::Given)
}

async fn list(switchboard: &Switchboard) -> Checked {
    let (task, _) = hooked(switchboard, ADDRESS).await?;
    let listed = match switchboard.json("task push-config list", &[&task]).await {
        Err(error) => return told_by(error),
        Ok(listed) => listed,
    };
    equal(listed["configs"].as_array().map(Vec::len), Some(1))?;
    equal(&listed["configs"][0]["url"], &Value::from(ADDRESS))?;
    Ok(Answer::Given)
}

/// What is gone cannot be had any more, in whichever words.
async fn delete(switchboard: &Switchboard) -> Checked {
    let (task, _) = hooked(switchboard, ADDRESS).await?;
    if let Err(error) = switchboard.json("task push-config delete", &[&task, "one"]).await {
        return told_by(error);
    }
    let ended = switchboard.ended("task push-config get", &[&task, "one"], "").await?;
    equal(ended.status.code(), Some(1))?;
    Ok(Answer::Given)
}

/// The server calls it with what comes of the answer.
async fn delivered(switchboard: &Switchboard) -> Checked {
    let receiver = Receiver::start().await?;
    let (task, _) = hooked(switchboard, &receiver.url()).await?;
    sent(switchboard, &["--task-id", &task, "Ada"]).await?;
    receiver.heard(&task, TOKEN.1, "hello Ada").await
}
