//! `send` and `chat`: texts, files, data, questions, and the three ways to wait.

use serde_json::{Value, json};

use super::{id, produced, state, text};
use crate::checks::STREAMED;
use crate::commands::switchboard::{Switchboard, refused_with, told_by};
use crate::run::{Answer, Checked, Run, equal};

pub(super) async fn run(run: &mut Run<'_>, switchboard: &Switchboard) {
    run.check("send", send(switchboard)).await;
    run.check("reply", reply(switchboard)).await;
    run.check("stream", stream(switchboard)).await;
    run.check("async", is_async(switchboard)).await;
    run.check("file", file(switchboard)).await;
    run.check("data", data(switchboard)).await;
    run.check("fail", fail(switchboard)).await;
    run.check("ask", ask(switchboard)).await;
    run.check("chat", chat(switchboard)).await;
    run.check("error-send-to-ended", send_to_ended(switchboard)).await;
}

/// Sends a text and waits for its task.
pub(super) async fn sent(switchboard: &Switchboard, words: &[&str]) -> anyhow::Result<Value> {
    let answer = switchboard.json("send", words).await?;
    anyhow::ensure!(answer["task"].is_object(), "expected a task, got {answer}");
    Ok(answer["task"].clone())
}

async fn send(switchboard: &Switchboard) -> Checked {
    let task = sent(switchboard, &["echo hello there"]).await?;
    equal((state(&task), produced(&task).as_str()), ("TASK_STATE_COMPLETED", "hello there"))?;
    Ok(Answer::Given)
}

async fn reply(switchboard: &Switchboard) -> Checked {
    let answer = switchboard.json("send", &["reply straight away"]).await?;
    equal(text(&answer["message"]["parts"]).as_str(), "straight away")?;
    equal(&answer["message"]["role"], &Value::from("ROLE_AGENT"))?;
    Ok(Answer::Given)
}

/// Every chunk on a line of its own, once and in order, and the end.
async fn stream(switchboard: &Switchboard) -> Checked {
    let events = switchboard.lines("send", &["--stream", &format!("stream {STREAMED}")], "").await?;
    let chunks = events.iter().filter(|event| event["artifactUpdate"].is_object());
    let chunks: Vec<String> = chunks.map(|event| text(&event["artifactUpdate"]["artifact"]["parts"])).collect();
    equal(chunks, (1..=STREAMED).map(|number| format!("chunk {number}\n")).collect::<Vec<_>>())?;
    let last = events.last().map(|event| state(&event["statusUpdate"]));
    equal(last, Some("TASK_STATE_COMPLETED"))?;
    Ok(Answer::Given)
}

/// It returns while the task is at work.
async fn is_async(switchboard: &Switchboard) -> Checked {
    let task = sent(switchboard, &["--async", "wait"]).await?;
    anyhow::ensure!(["TASK_STATE_SUBMITTED", "TASK_STATE_WORKING"].contains(&state(&task)), "the task is {task}");
    switchboard.json("task cancel", &[&id(&task)?]).await?;
    Ok(Answer::Given)
}

/// Every byte of a file, there and back into another folder. Its name is another check's.
async fn file(switchboard: &Switchboard) -> Checked {
    let bytes: Vec<u8> = (0..=255).collect();
    let path = switchboard.home().join("every-byte.bin");
    std::fs::write(&path, &bytes)?;
    let task = match sent(switchboard, &["file", "--file", &path.to_string_lossy()]).await {
        Err(error) => return told_by(error),
        Ok(task) => task,
    };
    let folder = tempfile::tempdir()?;
    let downloaded =
        switchboard.json("task download", &[&id(&task)?, "--out", &folder.path().to_string_lossy()]).await?;
    let saved = downloaded["saved"].as_array().map(Vec::as_slice);
    let Some([Value::String(saved)]) = saved else { anyhow::bail!("expected one file, got {downloaded}") };
    equal(std::fs::read(saved)?, bytes)?;
    Ok(Answer::Given)
}

async fn data(switchboard: &Switchboard) -> Checked {
    let data = json!({ "half": 0.5, "nested": { "list": [true, null, "x"] } });
    let task = sent(switchboard, &["data", "--data", &data.to_string()]).await?;
    equal(&task["artifacts"][0]["parts"][0]["data"], &data)?;
    Ok(Answer::Given)
}

/// A failed task is no failure of the command, unless that is wanted.
async fn fail(switchboard: &Switchboard) -> Checked {
    let task = sent(switchboard, &["fail"]).await?;
    equal(state(&task), "TASK_STATE_FAILED")?;
    equal(text(&task["status"]["message"]["parts"]).as_str(), "it did not work")?;
    let ended = switchboard.ended("send", &["--fail", "fail"], "").await?;
    equal(ended.status.code(), Some(1))?;
    let answer: Value = serde_json::from_slice(&ended.stdout)?;
    equal(state(&answer["task"]), "TASK_STATE_FAILED")?;
    Ok(Answer::Given)
}

/// The question, and what comes of the answer.
async fn ask(switchboard: &Switchboard) -> Checked {
    let question = sent(switchboard, &["ask"]).await?;
    equal(state(&question), "TASK_STATE_INPUT_REQUIRED")?;
    equal(text(&question["status"]["message"]["parts"]).as_str(), "what is your name?")?;
    let answer = sent(switchboard, &["--task-id", &id(&question)?, "Ada"]).await?;
    equal((state(&answer), produced(&answer).as_str()), ("TASK_STATE_COMPLETED", "hello Ada"))?;
    equal(id(&answer)?, id(&question)?)?;
    Ok(Answer::Given)
}

/// Three turns: a question, its answer, and a new task in the same conversation.
async fn chat(switchboard: &Switchboard) -> Checked {
    let turns = switchboard.lines("chat", &[], "ask\nGrace\necho more\n").await?;
    let [question, answer, more] = turns.as_slice() else { anyhow::bail!("expected three turns, got {turns:?}") };
    let [question, answer, more] = [question, answer, more].map(|turn| &turn["task"]);
    equal(state(question), "TASK_STATE_INPUT_REQUIRED")?;
    equal((state(answer), produced(answer).as_str()), ("TASK_STATE_COMPLETED", "hello Grace"))?;
    equal((state(more), produced(more).as_str()), ("TASK_STATE_COMPLETED", "more"))?;
    equal(id(answer)?, id(question)?)?;
    anyhow::ensure!(id(more)? != id(answer)?, "the third turn is of a task that has ended: {more}");
    equal(&more["contextId"], &question["contextId"])?;
    Ok(Answer::Given)
}

/// What has ended takes no more messages. Version 0.3 leaves open in which words.
async fn send_to_ended(switchboard: &Switchboard) -> Checked {
    let task = sent(switchboard, &["echo done"]).await?;
    let again = switchboard.json("send", &["--task-id", &id(&task)?, "echo more"]).await;
    refused_with(again, &["UnsupportedOperationError", "InvalidParamsError", "InvalidRequestError"])
}
