//! The agent of the comparison, by text: `hello` (working, one artifact, completed), `stream:N` and `streamy:N`
//! (N chunks, the second yielding between them), `hold` (works until canceled).

use a2a::{
    A2AError, Artifact, Part, StreamResponse, TaskArtifactUpdateEvent, TaskState, TaskStatus, TaskStatusUpdateEvent,
};
use a2a_server::{AgentExecutor, ExecutorContext};
use futures_util::stream::{self, BoxStream, StreamExt};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::oneshot;

#[derive(Default)]
pub(crate) struct Probe {
    /// Who waits for a cancel, by task.
    held: Arc<Mutex<HashMap<String, oneshot::Sender<()>>>>,
}

type Events = BoxStream<'static, Result<StreamResponse, A2AError>>;

impl AgentExecutor for Probe {
    fn execute(&self, context: ExecutorContext) -> Events {
        let text = context.message.as_ref().and_then(|message| message.text()).unwrap_or_default().to_owned();
        let ids = Ids { task: context.task_id, context: context.context_id };
        match text.split_once(':') {
            Some(("stream", count)) => chunks(ids, count),
            Some(("streamy", count)) => chunks(ids, count)
                .then(|event| async move {
                    tokio::task::yield_now().await;
                    event
                })
                .boxed(),
            _ if text == "hold" => self.hold(ids),
            _ => {
                let working = ids.status(TaskState::Working);
                let artifact = ids.artifact(text, None, None);
                let completed = ids.status(TaskState::Completed);
                stream::iter([Ok(working), Ok(artifact), Ok(completed)]).boxed()
            }
        }
    }

    fn cancel(&self, context: ExecutorContext) -> Events {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(waiting) = held.remove(&context.task_id) {
            // The receiver is gone only if the execution is.
            let _ = waiting.send(());
        }
        let ids = Ids { task: context.task_id, context: context.context_id };
        stream::iter([Ok(ids.status(TaskState::Canceled))]).boxed()
    }
}

impl Probe {
    fn hold(&self, ids: Ids) -> Events {
        let (sender, canceled) = oneshot::channel();
        self.held.lock().unwrap_or_else(PoisonError::into_inner).insert(ids.task.clone(), sender);
        let working = ids.status(TaskState::Working);
        let ending = stream::once(async move {
            // Either way the wait is over.
            let _ = canceled.await;
            Ok(ids.status(TaskState::Canceled))
        });
        stream::iter([Ok(working)]).chain(ending).boxed()
    }
}

fn chunks(ids: Ids, count: &str) -> Events {
    let Ok(count) = count.parse::<u32>() else {
        return stream::iter([Err(A2AError::invalid_params("the count is not a number"))]).boxed();
    };
    let events = (0..count + 2).map(move |index| {
        Ok(match index {
            0 => ids.status(TaskState::Working),
            index if index <= count => {
                let chunk = index - 1;
                ids.artifact(format!("chunk {chunk} "), Some(chunk > 0), Some(index == count))
            }
            _ => ids.status(TaskState::Completed),
        })
    });
    stream::iter(events).boxed()
}

struct Ids {
    task: String,
    context: String,
}

impl Ids {
    fn status(&self, state: TaskState) -> StreamResponse {
        StreamResponse::StatusUpdate(TaskStatusUpdateEvent {
            task_id: self.task.clone(),
            context_id: self.context.clone(),
            status: TaskStatus { state, message: None, timestamp: None },
            metadata: None,
        })
    }

    fn artifact(&self, text: String, append: Option<bool>, last_chunk: Option<bool>) -> StreamResponse {
        StreamResponse::ArtifactUpdate(TaskArtifactUpdateEvent {
            task_id: self.task.clone(),
            context_id: self.context.clone(),
            artifact: Artifact {
                artifact_id: "answer".to_owned(),
                name: None,
                description: None,
                parts: vec![Part::text(text)],
                metadata: None,
                extensions: None,
            },
            append,
            last_chunk,
            metadata: None,
        })
    }
}
