//! Children of a task of the hub's own as its turn follows them: beginning one, hearing of it, and what it has come to.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, select_all};
use switchboard_a2a::{Message, Task, TaskState};
use switchboard_engine::clock::Clock;
use switchboard_engine::event::Event;
use switchboard_engine::{
    AgentName, Call, CallError, Called, Error, EventKind, LoggedEvent, SendResult, Seq, Stopped, TaskHandle,
};

/// How often something is tried that does not work for now, such as while the store is busy.
const TRIES: usize = 10;
/// The longest wait between two of these.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// One child.
pub(crate) struct Child {
    pub(crate) agent: AgentName,
    pub(crate) stage: Stage,
}

/// How a child stands.
pub(crate) enum Stage {
    /// It works, or waits for the answer to its question.
    Open { called: Box<Called>, question: Option<Message> },
    /// It has ended, as a task.
    Ended(Box<Task>),
    /// No task was begun.
    Refused(String),
}

impl Child {
    /// The state it has ended in.
    pub(crate) fn ended(&self) -> Option<TaskState> {
        match &self.stage {
            Stage::Open { .. } => None,
            Stage::Ended(task) => Some(task.status.state),
            Stage::Refused(_) => Some(TaskState::Rejected),
        }
    }

    /// What it waits for.
    pub(crate) fn question(&self) -> Option<&Message> {
        match &self.stage {
            Stage::Open { question, .. } => question.as_ref(),
            _ => None,
        }
    }

    pub(crate) fn called(&self) -> Option<&Called> {
        match &self.stage {
            Stage::Open { called, .. } => Some(called),
            _ => None,
        }
    }
}

/// Begins a child, or joins the one that an earlier run has begun under the same key. Again if that does not work just now.
pub(crate) async fn begin(task: &TaskHandle, clock: &dyn Clock, call: Call) -> Result<Child, Stopped> {
    let agent = call.to.clone();
    let stage = match patiently(task, clock, || task.call(call.clone()).boxed()).await {
        // One that an earlier run has begun may wait by now.
        Ok(called) => {
            let status = called.snapshot().status;
            let question = status.message.filter(|_| status.state.is_interrupted());
            Stage::Open { called: Box::new(called), question }
        }
        Err(CallError::Refused(error)) => Stage::Refused(error.to_string()),
        Err(CallError::Stopped(stopped)) => return Err(stopped),
    };
    Ok(Child { agent, stage })
}

/// Tries again what the store or the agent cannot do just now.
pub(crate) async fn patiently<'a, T>(
    task: &TaskHandle,
    clock: &dyn Clock,
    attempt: impl Fn() -> BoxFuture<'a, Result<T, CallError>>,
) -> Result<T, CallError> {
    for _ in 1..TRIES {
        let wait = match attempt().await {
            Err(CallError::Refused(Error::Unavailable { retry_after_ms, .. })) => {
                Duration::from_millis(retry_after_ms).min(LONGEST_WAIT)
            }
            result => return result,
        };
        let waited = task.release_permit_while(async {
            tokio::select! {
                () = clock.sleep(wait) => {}
                () = task.canceled() => {}
            }
        });
        waited.await?;
    }
    attempt().await
}

/// News of a child.
pub(crate) struct News {
    pub(crate) index: usize,
    events: Option<Vec<Arc<LoggedEvent>>>,
}

/// Waits until a child has events. Dropped without loss: events are taken only when this is ready.
pub(crate) async fn next_news(children: &mut [Child]) -> Result<News, Error> {
    let mut waits: Vec<BoxFuture<'_, Result<News, Error>>> = Vec::new();
    for (index, child) in children.iter_mut().enumerate() {
        if let Stage::Open { called, .. } = &mut child.stage {
            waits.push(called.next().map(move |events| Ok(News { index, events: events? })).boxed());
        }
    }
    if waits.is_empty() {
        return std::future::pending().await;
    }
    select_all(waits).await.0
}

/// What news came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// The number of the question in its log.
    Asks(Seq),
    Ended,
    Nothing,
}

/// Takes news of a child in.
pub(crate) async fn take_news(children: &mut [Child], news: News) -> Result<Change, Error> {
    let Some(child) = children.get_mut(news.index) else { return Ok(Change::Nothing) };
    let Stage::Open { called, question } = &mut child.stage else { return Ok(Change::Nothing) };
    let Some(events) = news.events else {
        child.stage = Stage::Ended(Box::new(ended_task(called).await?));
        return Ok(Change::Ended);
    };
    let mut change = Change::Nothing;
    for event in events {
        let EventKind::Status(state) = event.kind else { continue };
        (change, *question) = match state.is_interrupted() {
            true => (Change::Asks(event.seq), Some(question_of(&event.line))),
            false => (Change::Nothing, None),
        };
    }
    Ok(change)
}

/// The child's task once it has ended; a direct reply counts as a task that has completed with it.
async fn ended_task(called: &Called) -> Result<Task, Error> {
    match called.end().await? {
        SendResult::Task(reading) => reading.into_task(),
        SendResult::Message(message) => Ok(Task {
            id: called.id().clone(),
            context_id: message.context_id.clone().unwrap_or_else(|| "".into()),
            status: switchboard_a2a::TaskStatus {
                state: TaskState::Completed,
                message: Some(message),
                timestamp: None,
            },
            artifacts: Vec::new(),
            history: Vec::new(),
            metadata: None,
        }),
    }
}

fn question_of(line: &[u8]) -> Message {
    let asked = match Event::decode(line) {
        Ok(Event::StatusUpdate(update)) => update.status.message,
        _ => None,
    };
    asked.unwrap_or_else(|| Message::text(switchboard_a2a::Role::Agent, ""))
}
