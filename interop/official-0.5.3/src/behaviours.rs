//! The agent. What it does is in the first word of a message: `echo`, `reply`, `stream COUNT`, `ask`, `fail`, `wait`, `file`,
//! `data` or `inspect`, which tells the bytes of a file in hexadecimal and returns them in reverse, as with every SDK; and
//! what shows how the SDK takes agents that are not so well behaved: `burst COUNT` thinks for a moment and then says all of
//! its chunks without awaiting anything, `work COUNT` gives one in 50 ms and does not care for being canceled, `error` ends
//! with an error and `panic` with a panic, each while the task is at work.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use a2a::{A2AError, Part, PartContent, StreamResponse, TaskState};
use a2a_server::{AgentExecutor, ExecutorContext};
use futures_util::stream::{self, BoxStream, StreamExt};
use tokio::sync::oneshot;

use crate::events::Work;
use crate::executions::noted;

/// What ends the wait of a task.
type Waiting = Arc<Mutex<HashMap<String, oneshot::Sender<()>>>>;

#[derive(Default)]
pub(crate) struct Behaviours {
    waiting: Waiting,
}

/// What makes a chunk so large that writing it takes longer than saying it, and what comes of a burst no matter of luck.
const LARGE: usize = 8 << 10;

/// Long enough for subscribers to hear that the work has begun.
const THOUGHT: Duration = Duration::from_millis(200);

type Events = BoxStream<'static, Result<StreamResponse, A2AError>>;

impl AgentExecutor for Behaviours {
    fn execute(&self, context: ExecutorContext) -> Events {
        noted(context, |context| self.behave(context))
    }

    fn cancel(&self, context: ExecutorContext) -> Events {
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(&context.task_id);
        if let Some(waiting) = waiting {
            // The receiver is gone if the execution is.
            let _ = waiting.send(());
        }
        let work = Work { task_id: context.task_id, context_id: context.context_id };
        told([work.status(TaskState::Canceled)])
    }
}

impl Behaviours {
    fn behave(&self, context: ExecutorContext) -> Events {
        let parts = context.message.map(|message| message.parts).unwrap_or_default();
        let said: String = parts.iter().filter_map(Part::as_text).collect();
        let asked = context.stored_task.is_some_and(|task| task.status.state == TaskState::InputRequired);
        let work = Work { task_id: context.task_id, context_id: context.context_id };
        if asked {
            let greeting = work.artifact("greeting", vec![Part::text(format!("hello {said}"))]);
            return told([greeting, work.status(TaskState::Completed)]);
        }
        let (word, rest) = said.split_once(' ').unwrap_or((&said, ""));
        let working = work.status(TaskState::Working);
        match word {
            "echo" => told([working, work.artifact("echo", vec![Part::text(rest)]), work.status(TaskState::Completed)]),
            "reply" => told([StreamResponse::Message(work.message(rest))]),
            "stream" => told([working]).chain(paced(chunks(work, rest, 0), tokio::task::yield_now)).boxed(),
            "burst" => told([working]).chain(after(THOUGHT, chunks(work, rest, LARGE))).boxed(),
            "work" => {
                let pause = || tokio::time::sleep(Duration::from_millis(50));
                told([working]).chain(paced(chunks(work, rest, 0), pause)).boxed()
            }
            "ask" => told([working, work.status_saying(TaskState::InputRequired, "what is your name?")]),
            "fail" => told([working, work.status_saying(TaskState::Failed, "it did not work")]),
            "wait" => self.wait(work),
            "file" | "data" => {
                let returned = parts.into_iter().skip(1).collect();
                told([working, work.artifact("returned", returned), work.status(TaskState::Completed)])
            }
            "inspect" => {
                let mut content = parts.into_iter().nth(1).and_then(bytes).unwrap_or_default();
                let said: String = content.iter().map(|byte| format!("{byte:02x}")).collect();
                content.reverse();
                let inspected = work.artifact("inspected", vec![Part::text(said), Part::raw(content)]);
                told([working, inspected, work.status(TaskState::Completed)])
            }
            "error" => {
                let error = Err(A2AError::internal("the agent gave up"));
                told([working]).chain(stream::iter([error])).boxed()
            }
            "panic" => told([working]).chain(stream::once(async { panic!("the agent was told to panic") })).boxed(),
            _ => told([work.status_saying(TaskState::Rejected, &format!("{word} is nothing this agent does"))]),
        }
    }

    /// Until it is canceled.
    fn wait(&self, work: Work) -> Events {
        let (sender, canceled) = oneshot::channel();
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).insert(work.task_id.clone(), sender);
        let working = work.status(TaskState::Working);
        let end = stream::once(async move {
            // Either way the wait is over.
            let _ = canceled.await;
            Ok(work.status(TaskState::Canceled))
        });
        told([working]).chain(end).boxed()
    }
}

/// What a file holds that came with its bytes.
fn bytes(part: Part) -> Option<Vec<u8>> {
    match part.content {
        PartContent::Raw(bytes) => Some(bytes),
        _ => None,
    }
}

fn told<const N: usize>(events: [StreamResponse; N]) -> Events {
    stream::iter(events.map(Ok)).boxed()
}

/// All there is to say, as fast as it is taken.
fn chunks(work: Work, count: &str, padding: usize) -> Events {
    let Ok(count) = count.parse::<u32>() else {
        return told([work.status_saying(TaskState::Rejected, "the count is not a number")]);
    };
    let padding = ".".repeat(padding);
    let events = (1..=count.saturating_add(1)).map(move |number| match number <= count {
        true => work.chunk(number, count, &padding),
        false => work.status(TaskState::Completed),
    });
    stream::iter(events.map(Ok)).boxed()
}

fn paced<Pause: Future<Output = ()> + Send + 'static>(events: Events, pause: fn() -> Pause) -> Events {
    events
        .then(move |event| async move {
            pause().await;
            event
        })
        .boxed()
}

fn after(pause: Duration, events: Events) -> Events {
    let pause = stream::once(tokio::time::sleep(pause)).filter_map(|()| async { None });
    pause.chain(events).boxed()
}
