//! Webhooks of a task that waits for an answer. Only the one that is on this machine lives to see what comes of it.

use switchboard_a2a::{Message, PushConfig, Role, SendResponse, Task, TaskState};
use switchboard_client::{ClientError, response_text};

use crate::caller::{Caller, request};
use crate::receiver::Receiver;
use crate::run::{Answer, Checked, Run, equal, told_by};

/// An address that no host has: it is reserved for documentation.
const ADDRESS: &str = "https://192.0.2.1/hook";
const TOKEN: &str = "shared";

pub(super) async fn run(run: &mut Run<'_>, caller: &Caller) {
    run.check("webhook-set", set(caller)).await;
    run.check("webhook-get", get(caller)).await;
    run.check("webhook-list", list(caller)).await;
    run.check("webhook-delete", delete(caller)).await;
    run.check("webhook-delivered", delivered(caller)).await;
}

async fn parked(caller: &Caller) -> anyhow::Result<Task> {
    match caller.send("ask").await? {
        SendResponse::Task(task) if task.status.state == TaskState::InputRequired => Ok(task),
        outcome => anyhow::bail!("expected a question, got {outcome:?}"),
    }
}

async fn hook(caller: &Caller, task: &Task, id: &str) -> Result<PushConfig, ClientError> {
    hook_at(caller, task, id, format!("{ADDRESS}/{id}")).await
}

async fn hook_at(caller: &Caller, task: &Task, id: &str, url: String) -> Result<PushConfig, ClientError> {
    let config = PushConfig {
        tenant: None,
        id: Some(id.to_owned()),
        task_id: Some(task.id.as_str().to_owned()),
        url,
        token: Some(TOKEN.to_owned()),
        authentication: None,
        payload: None,
    };
    caller.client.set_webhook(&caller.context, config).await
}

async fn set(caller: &Caller) -> Checked {
    let task = parked(caller).await?;
    let config = match hook(caller, &task, "one").await {
        Err(error) => return told_by(error),
        Ok(config) => config,
    };
    equal(config.url, format!("{ADDRESS}/one"))?;
    equal(config.id.as_deref(), Some("one"))?;
    Ok(Answer::Given)
}

async fn get(caller: &Caller) -> Checked {
    let task = parked(caller).await?;
    hook(caller, &task, "one").await?;
    let config = match caller.client.webhook(&caller.context, &task.id, Some("one")).await {
        Err(error) => return told_by(error),
        Ok(config) => config,
    };
    equal(config.url, format!("{ADDRESS}/one"))?;
    equal((config.id.as_deref(), config.task_id.as_deref()), (Some("one"), Some(task.id.as_str())))?;
    Ok(Answer::Given)
}

async fn list(caller: &Caller) -> Checked {
    let task = parked(caller).await?;
    hook(caller, &task, "one").await?;
    hook(caller, &task, "two").await?;
    let configs = match caller.client.webhooks(&caller.context, &task.id).await {
        Err(error) => return told_by(error),
        Ok(configs) => configs,
    };
    let mut addresses: Vec<_> = configs.into_iter().map(|config| config.url).collect();
    addresses.sort();
    equal(addresses, vec![format!("{ADDRESS}/one"), format!("{ADDRESS}/two")])?;
    Ok(Answer::Given)
}

/// What is gone cannot be had any more, in whichever words.
async fn delete(caller: &Caller) -> Checked {
    let task = parked(caller).await?;
    hook(caller, &task, "one").await?;
    if let Err(error) = caller.client.delete_webhook(&caller.context, &task.id, "one").await {
        return told_by(error);
    }
    match caller.client.webhook(&caller.context, &task.id, Some("one")).await {
        Err(ClientError::Agent(_)) => Ok(Answer::Given),
        Err(error) => Err(anyhow::Error::from(error).context("expected a refusal")),
        Ok(config) => anyhow::bail!("the webhook is still there: {config:?}"),
    }
}

/// The server calls it with what comes of the answer.
async fn delivered(caller: &Caller) -> Checked {
    let receiver = Receiver::start().await?;
    let task = parked(caller).await?;
    hook_at(caller, &task, "one", receiver.url()).await?;
    let mut message = Message::text(Role::User, "Ada");
    (message.task_id, message.context_id) = (Some(task.id.clone()), Some(task.context_id));
    let outcome = caller.client.send(&caller.context, request(message)).await?;
    equal(response_text(&outcome).as_str(), "hello Ada")?;
    receiver.heard(task.id.as_str(), TOKEN, "hello Ada").await
}
