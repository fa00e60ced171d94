//! Tasks as they are: asked for, listed, canceled and followed.

use switchboard_a2a::{ErrorKind, ListRequest, SendResponse, TaskId, TaskState};
use switchboard_client::{Conversation, response_text};

use super::fails_with;
use crate::caller::{Caller, completed, followed, request};
use crate::run::{Answer, Checked, equal, told_by};

/// The answer comes while the task is at work.
pub(super) async fn return_immediately(caller: &Caller) -> Checked {
    let task = caller.begin_wait().await?;
    let now = caller.client.get(&caller.context, &task.id, None).await?;
    anyhow::ensure!(!now.status.state.is_terminal(), "the task has ended: {now:?}");
    caller.client.cancel(&caller.context, &task.id, None).await?;
    Ok(Answer::Given)
}

pub(super) async fn get(caller: &Caller) -> Checked {
    let task = caller.begin_and_end().await?;
    let again = caller.client.get(&caller.context, &task.id, None).await?;
    equal((&again.id, &again.context_id), (&task.id, &task.context_id))?;
    let outcome = SendResponse::Task(again);
    equal(response_text(&outcome).as_str(), "done")?;
    completed(outcome)?;
    Ok(Answer::Given)
}

/// No history, a piece of it, and all of it.
pub(super) async fn get_history_length(caller: &Caller) -> Checked {
    let mut conversation = Conversation::default();
    conversation.record_response(&caller.client.send(&caller.context, request(conversation.text("ask"))).await?);
    let answer = caller.client.send(&caller.context, request(conversation.text("Ada"))).await?;
    let task = completed(answer)?;
    // Some give none unless they are asked for it.
    let all = caller.client.get(&caller.context, &task.id, Some(100)).await?;
    anyhow::ensure!(all.history.len() >= 2, "two messages were sent, the history is {:?}", all.history);
    let one = caller.client.get(&caller.context, &task.id, Some(1)).await?;
    equal(one.history.as_slice(), &all.history[all.history.len() - 1..])?;
    let none = caller.client.get(&caller.context, &task.id, Some(0)).await?;
    equal(none.history.len(), 0)?;
    Ok(Answer::Given)
}

/// Of one conversation, in pages.
pub(super) async fn list(caller: &Caller) -> Checked {
    let task = caller.begin_and_end().await?;
    let mut conversation = Conversation { context_id: Some(task.context_id.clone()), task_id: None };
    let answer = caller.client.send(&caller.context, request(conversation.text("echo again"))).await?;
    conversation.record_response(&answer);
    let second = completed(answer)?;
    let mut wanted = ListRequest {
        context_id: Some(task.context_id.clone()),
        page_size: Some(1),
        include_artifacts: true,
        ..ListRequest::default()
    };
    let first_page = match caller.client.list(&caller.context, wanted.clone()).await {
        Err(error) => return told_by(error),
        Ok(page) if page.tasks.is_empty() => return Ok(Answer::Broken),
        Ok(page) => page,
    };
    wanted.page_token = Some(first_page.next_page_token);
    let second_page = caller.client.list(&caller.context, wanted).await?;
    let listed = first_page.tasks.into_iter().chain(second_page.tasks);
    let mut listed: Vec<_> = listed.map(|task| (task.id.clone(), response_text(&SendResponse::Task(task)))).collect();
    let mut expected = vec![(task.id, "done".to_owned()), (second.id, "again".to_owned())];
    listed.sort();
    expected.sort();
    equal(listed, expected)?;
    equal(first_page.total_size, 2)?;
    Ok(Answer::Given)
}

pub(super) async fn cancel(caller: &Caller) -> Checked {
    let task = caller.begin_wait().await?;
    let canceled = caller.client.cancel(&caller.context, &task.id, None).await?;
    equal((&canceled.id, canceled.status.state), (&task.id, TaskState::Canceled))?;
    let now = caller.client.get(&caller.context, &task.id, None).await?;
    equal(now.status.state, TaskState::Canceled)?;
    Ok(Answer::Given)
}

/// A task at work, which is canceled meanwhile.
pub(super) async fn subscribe(caller: &Caller) -> Checked {
    let task = caller.begin_wait().await?;
    let stream = caller.client.subscribe(&caller.context, task.id.clone()).await?;
    caller.client.cancel(&caller.context, &task.id, None).await?;
    let outcome = stream.finish().await?;
    anyhow::ensure!(outcome.state() == Some(TaskState::Canceled), "expected a canceled task, got {outcome:?}");
    equal(outcome.task().map(|task| &task.id), Some(&task.id))?;
    Ok(Answer::Given)
}

/// No server lets one subscribe to it, so it is asked for.
pub(super) async fn subscribe_ended(caller: &Caller) -> Checked {
    let task = caller.begin_and_end().await?;
    let stream = caller.client.subscribe(&caller.context, task.id.clone()).await?;
    let (_, outcome) = followed(stream).await?;
    equal(response_text(&outcome).as_str(), "done")?;
    equal(completed(outcome)?.id, task.id)?;
    Ok(Answer::Given)
}

pub(super) async fn unknown_task(caller: &Caller) -> Checked {
    let unknown = TaskId::generate();
    fails_with(caller.client.get(&caller.context, &unknown, None).await, ErrorKind::TaskNotFound)?;
    fails_with(caller.client.cancel(&caller.context, &unknown, None).await, ErrorKind::TaskNotFound)?;
    let subscribed = match caller.client.subscribe(&caller.context, unknown).await {
        Ok(stream) => stream.finish().await,
        Err(error) => Err(error),
    };
    fails_with(subscribed, ErrorKind::TaskNotFound)
}

pub(super) async fn cancel_ended(caller: &Caller) -> Checked {
    let task = caller.begin_and_end().await?;
    fails_with(caller.client.cancel(&caller.context, &task.id, None).await, ErrorKind::TaskNotCancelable)
}
