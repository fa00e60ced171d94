//! The checks, in the order of interop/operations.json.

mod conversations;
mod tasks;
mod webhooks;

use anyhow::Context as _;
use serde_json::Value;
use switchboard_a2a::card::AgentCard;
use switchboard_a2a::{ErrorKind, Json, Message, Part, PartContent, Role, StreamResponse, TaskState};
use switchboard_client::response_text;

use crate::caller::{Caller, completed, followed};
use crate::run::{Answer, Checked, Run, equal, told_by};

pub(crate) async fn run(run: &mut Run<'_>, caller: &Caller) {
    run.check("card", card(caller)).await;
    run.check("extended-card", extended_card(caller)).await;
    run.check("send", send(caller)).await;
    run.check("reply", reply(caller)).await;
    run.check("stream", stream(caller)).await;
    run.check("stream-reply", stream_reply(caller)).await;
    run.check("file-bytes", file_bytes(caller)).await;
    run.check("file-inspected", file_inspected(caller)).await;
    run.check("file-address", file_address(caller)).await;
    run.check("file-name", file_name(caller)).await;
    run.check("data", data(caller)).await;
    run.check("fail", fail(caller)).await;
    run.check("ask", conversations::ask(caller)).await;
    run.check("stream-ask", conversations::stream_ask(caller)).await;
    run.check("return-immediately", tasks::return_immediately(caller)).await;
    run.check("get", tasks::get(caller)).await;
    run.check("get-history-length", tasks::get_history_length(caller)).await;
    run.check("list", tasks::list(caller)).await;
    run.check("cancel", tasks::cancel(caller)).await;
    run.check("subscribe", tasks::subscribe(caller)).await;
    run.check("subscribe-ended", tasks::subscribe_ended(caller)).await;
    webhooks::run(run, caller).await;
    run.check("error-unknown-task", tasks::unknown_task(caller)).await;
    run.check("error-cancel-ended", tasks::cancel_ended(caller)).await;
    run.check("error-send-to-ended", conversations::send_to_ended(caller)).await;
}

async fn card(caller: &Caller) -> Checked {
    let found = caller.client.card(&caller.context).await?;
    equal(found.card.name.as_str(), "Behaviours")?;
    equal(found.card.capabilities.streaming, Some(true))?;
    equal(&AgentCard::decode(&found.json)?, &found.card)?;
    let interface = caller.client.interface(&caller.context).await?;
    equal((interface.binding, interface.version), (caller.binding, caller.version))?;
    Ok(Answer::Given)
}

/// None of the servers has one, and each must say so.
async fn extended_card(caller: &Caller) -> Checked {
    match caller.client.extended_card(&caller.context).await {
        Ok((card, _)) => {
            equal(card.name.as_str(), "Behaviours")?;
            Ok(Answer::Given)
        }
        Err(error) => told_by(error),
    }
}

async fn send(caller: &Caller) -> Checked {
    let outcome = caller.send("echo hello there").await?;
    equal(response_text(&outcome).as_str(), "hello there")?;
    completed(outcome)?;
    Ok(Answer::Given)
}

async fn reply(caller: &Caller) -> Checked {
    let outcome = caller.send("reply straight away").await?;
    anyhow::ensure!(outcome.task().is_none(), "expected a message, got {outcome:?}");
    equal(response_text(&outcome).as_str(), "straight away")?;
    Ok(Answer::Given)
}

/// How many chunks an agent streams. With the two status events they fit the 32 events that the official Rust SDK keeps
/// for a reader; it breaks off a stream that falls further behind, which on a busy machine is a matter of luck.
pub(crate) const STREAMED: usize = 30;

/// Every chunk, once and in order, and the end.
async fn stream(caller: &Caller) -> Checked {
    let expected: Vec<String> = (1..=STREAMED).map(|number| format!("chunk {number}\n")).collect();
    let stream = caller.stream(Message::text(Role::User, format!("stream {STREAMED}"))).await?;
    let (events, response) = followed(stream).await?;
    let mut chunks = Vec::new();
    let mut states = Vec::new();
    for event in &events {
        match event {
            StreamResponse::ArtifactUpdate(update) => {
                chunks.extend(update.artifact.parts.iter().filter_map(Part::as_text).map(str::to_owned));
            }
            StreamResponse::StatusUpdate(update) => states.push(update.status.state),
            StreamResponse::Task(task) => states.push(task.status.state),
            StreamResponse::Message(message) => anyhow::bail!("a message in the stream of a task: {message:?}"),
        }
    }
    equal(chunks.concat(), expected.concat())?;
    equal(chunks.len(), STREAMED)?;
    equal(states.last(), Some(&TaskState::Completed))?;
    equal(response_text(&response), expected.concat())?;
    completed(response)?;
    Ok(Answer::Given)
}

async fn stream_reply(caller: &Caller) -> Checked {
    let (events, outcome) = followed(caller.stream(Message::text(Role::User, "reply at once")).await?).await?;
    equal(events.len(), 1)?;
    anyhow::ensure!(outcome.task().is_none(), "expected a message, got {outcome:?}");
    equal(response_text(&outcome).as_str(), "at once")?;
    Ok(Answer::Given)
}

/// Every byte, both ways.
async fn file_bytes(caller: &Caller) -> Checked {
    let sent = file(PartContent::Raw((0..=255).collect()), "application/octet-stream");
    returned(caller, sent, |part| (part.content.clone(), part.media_type.clone())).await
}

/// The agent tells what it got and sends a file of its own, so that a mistake on one way is not undone on the other. The
/// second content is base64 itself, and meant as such.
async fn file_inspected(caller: &Caller) -> Checked {
    let every: Vec<u8> = (0..=255).collect();
    for content in [every.clone(), b"AAECAwQFBgc=".to_vec(), b"test".to_vec()] {
        let said: String = content.iter().map(|byte| format!("{byte:02x}")).collect();
        let returned: Vec<u8> = content.iter().rev().copied().collect();
        let sent = file(PartContent::Raw(content), "application/octet-stream");
        let parts = caller.send_parts("inspect", std::slice::from_ref(&sent)).await?;
        let inspected: Vec<PartContent> = parts.into_iter().map(|part| part.content).collect();
        equal(inspected, vec![PartContent::Text(said.clone()), PartContent::Raw(returned.clone())])?;
        let mut message = Message::text(Role::User, "inspect");
        message.parts.push(sent);
        let (events, _) = followed(caller.stream(message).await?).await?;
        let made = events.into_iter().find_map(|event| match event {
            StreamResponse::ArtifactUpdate(update) => Some(update.artifact.parts),
            _ => None,
        });
        let streamed: Vec<PartContent> =
            made.context("no artifact was streamed")?.into_iter().map(|part| part.content).collect();
        equal(streamed, vec![PartContent::Text(said), PartContent::Raw(returned)])?;
    }
    Ok(Answer::Given)
}

async fn file_address(caller: &Caller) -> Checked {
    let sent = file(PartContent::Url("https://files.example/picture.png".to_owned()), "image/png");
    returned(caller, sent, |part| (part.content.clone(), part.media_type.clone())).await
}

/// That of a file at an address. Some lose it.
async fn file_name(caller: &Caller) -> Checked {
    let mut sent = file(PartContent::Url("https://files.example/1".to_owned()), "image/png");
    sent.filename = Some("picture.png".to_owned());
    let parts = caller.send_parts("file", std::slice::from_ref(&sent)).await?;
    match parts.as_slice() {
        [part] if part.filename == sent.filename => Ok(Answer::Given),
        [part] if part.filename.is_none() && part.content == sent.content => Ok(Answer::Broken),
        parts => anyhow::bail!("expected {sent:?}, got {parts:?}"),
    }
}

fn file(content: PartContent, media_type: &str) -> Part {
    Part { media_type: Some(media_type.to_owned()), ..Part::new(content) }
}

/// Sends a part and compares what comes back.
async fn returned<T: PartialEq + std::fmt::Debug>(caller: &Caller, sent: Part, view: fn(&Part) -> T) -> Checked {
    match caller.send_parts("file", std::slice::from_ref(&sent)).await {
        Ok(parts) => {
            equal(parts.iter().map(view).collect::<Vec<_>>(), vec![view(&sent)])?;
            Ok(Answer::Given)
        }
        Err(error) => told_by(error.downcast()?),
    }
}

/// An object, both ways.
async fn data(caller: &Caller) -> Checked {
    let sent = serde_json::json!({ "half": 0.5, "seven": 7, "nested": { "list": [true, null, "x"] } });
    let returned = caller.send_parts("data", &[Part::data(Json::from_serialize(&sent)?)]).await?;
    let part = returned.first().context("the artifact is empty")?;
    let PartContent::Data(data) = &part.content else { anyhow::bail!("expected data, got {part:?}") };
    equal(in_doubles(data.read()?), in_doubles(sent))?;
    equal(returned.len(), 1)?;
    Ok(Answer::Given)
}

/// Many servers have no other numbers.
fn in_doubles(value: Value) -> Value {
    match value {
        Value::Number(number) => number.as_f64().into(),
        Value::Array(values) => values.into_iter().map(in_doubles).collect(),
        Value::Object(members) => members.into_iter().map(|(name, value)| (name, in_doubles(value))).collect(),
        value => value,
    }
}

/// A failed task is an outcome, not an error.
async fn fail(caller: &Caller) -> Checked {
    let outcome = caller.send("fail").await?;
    anyhow::ensure!(outcome.state() == Some(TaskState::Failed), "expected a failed task, got {outcome:?}");
    equal(response_text(&outcome).as_str(), "it did not work")?;
    Ok(Answer::Given)
}

/// The error that a call must end in.
fn fails_with<T: std::fmt::Debug>(result: Result<T, switchboard_client::ClientError>, kind: ErrorKind) -> Checked {
    match result {
        Err(error) if error.error_kind() == Some(kind) => Ok(Answer::Given),
        Err(error) => Err(anyhow::Error::from(error).context(format!("expected {kind:?}"))),
        Ok(answer) => anyhow::bail!("expected {kind:?}, got {answer:?}"),
    }
}
