//! Tasks that ask, and answers to them.

use switchboard_a2a::{ErrorKind, Message, Role, TaskState};
use switchboard_client::{Conversation, response_text};

use crate::caller::{Caller, completed, followed, request};
use crate::run::{Answer, Checked, equal};

/// The question, and what comes of the answer.
pub(super) async fn ask(caller: &Caller) -> Checked {
    let mut conversation = Conversation::default();
    let question = caller.client.send(&caller.context, request(conversation.text("ask"))).await?;
    conversation.record_response(&question);
    anyhow::ensure!(question.state() == Some(TaskState::InputRequired), "expected a question, got {question:?}");
    equal(response_text(&question).as_str(), "what is your name?")?;
    let answer = caller.client.send(&caller.context, request(conversation.text("Ada"))).await?;
    conversation.record_response(&answer);
    equal(response_text(&answer).as_str(), "hello Ada")?;
    equal(completed(answer)?.id, question.task().map(|task| task.id.clone()).unwrap_or_default())?;
    equal(conversation.task_id, None)?;
    Ok(Answer::Given)
}

/// The stream ends with the question, and that of the answer with the task.
pub(super) async fn stream_ask(caller: &Caller) -> Checked {
    let mut conversation = Conversation::default();
    let (_, question) = followed(caller.stream(conversation.text("ask")).await?).await?;
    conversation.record_response(&question);
    anyhow::ensure!(question.state() == Some(TaskState::InputRequired), "expected a question, got {question:?}");
    equal(response_text(&question).as_str(), "what is your name?")?;
    let (_, answer) = followed(caller.stream(conversation.text("Grace")).await?).await?;
    equal(response_text(&answer).as_str(), "hello Grace")?;
    equal(completed(answer)?.status.state, TaskState::Completed)?;
    Ok(Answer::Given)
}

/// What has ended takes no more messages. Version 0.3 leaves open in which words.
pub(super) async fn send_to_ended(caller: &Caller) -> Checked {
    let task = caller.begin_and_end().await?;
    let mut message = Message::text(Role::User, "echo more");
    (message.task_id, message.context_id) = (Some(task.id), Some(task.context_id));
    let kinds = [ErrorKind::UnsupportedOperation, ErrorKind::InvalidParams, ErrorKind::InvalidRequest];
    match caller.client.send(&caller.context, request(message)).await {
        Err(error) if error.error_kind().is_some_and(|kind| kinds.contains(&kind)) => Ok(Answer::Given),
        Err(error) => Err(anyhow::Error::from(error).context("expected a refusal")),
        Ok(answer) => anyhow::bail!("expected a refusal, got {answer:?}"),
    }
}
