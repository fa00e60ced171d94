//! A check of what a task has come to, before it ends COMPLETED. The kernel knows nothing of results; the crate that serves an agent
//! may bring a check with it. A bad result is asked for once more, as a message of the same task that the agent's next
//! turn works on: it is in the log, so it outlives the process, and every kind of agent can do it.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use switchboard_a2a::{Artifact, Json, Message, Metadata, Role, Task, TaskArtifactUpdate, TaskState, TaskStatusUpdate};

use crate::batch::Batch;
use crate::engine::EngineState;
use crate::event::{Event, Received};
use crate::live_task::{Core, LiveTask, RunProgress};
use crate::reason::{REASON_DETAIL_KEY, Reason};
use crate::routing_hints::RoutingHints;
use crate::turn::panic_text;

/// The key of a message's metadata that asks for a result once more.
pub const REPAIR_KEY: &str = "switchboard/repair";

/// The word for the failure of a task whose result is bad also the second time.
pub const INVALID_RESULT: &str = "invalid_result";

/// Judges results.
pub trait ResultCheck: Send + Sync + 'static {
    /// What is to become of a task that would end COMPLETED as it is, for the skill that was asked for last. Of a task whose
    /// result was asked for once more, the artifacts are what was made since.
    fn check(&self, task: &Task, skill: &str) -> ResultVerdict;
}

/// What is to become of a result.
#[derive(Clone, Debug, PartialEq)]
pub enum ResultVerdict {
    /// The task ends.
    Good,
    /// The task ends, with this artifact too.
    GoodAs(Box<Artifact>),
    /// The agent is asked once more, and fails if that was done before.
    Bad {
        /// What is wrong, for the caller.
        problem: String,
        /// What the agent is asked.
        request: String,
    },
}

impl LiveTask {
    /// Output that completes the task, after the check that the agent is served with.
    pub(crate) fn check_result(&self, engine: &EngineState, core: &mut Core, batch: Batch) -> Batch {
        let Some(check) = core.served.as_ref().and_then(|served| served.result_check.clone()) else { return batch };
        let mut after = core.fold.clone();
        let mut seq = core.last_seq;
        for event in &batch.events {
            seq = seq.plus(1);
            after.apply(seq, event);
        }
        let Some(current) = after.kernel.current.as_ref().map(|current| Arc::clone(&current.received)) else {
            return batch;
        };
        let Some(skill) = RoutingHints::seen_by(&self.task.agent, &current).skill else { return batch };
        let mut task = after.task;
        if let Some(artifacts) = after.kernel.since_repair {
            task.artifacts = artifacts;
        }
        let verdict = std::panic::catch_unwind(AssertUnwindSafe(|| check.check(&task, &skill)));
        if let Ok(ResultVerdict::Good) = verdict {
            return batch;
        }
        let mut events = batch.events;
        let Some(Event::StatusUpdate(mut end)) = events.pop() else { return Batch::of(events) };
        let verdict = match verdict {
            Ok(verdict) => verdict,
            Err(panic) => {
                let panic = panic_text(panic.as_ref());
                tracing::error!(task = %self.task.id, agent = %self.task.agent, panic, "the check of a result panicked");
                fail(&mut end, format!("the check of the result panicked: {panic}"), Reason::Panic);
                core.output.state = TaskState::Failed;
                events.push(Event::StatusUpdate(end));
                return Batch::of(events);
            }
        };
        match verdict {
            ResultVerdict::Good => events.push(Event::StatusUpdate(end)),
            ResultVerdict::GoodAs(artifact) => {
                let update = TaskArtifactUpdate {
                    task_id: self.task.id.clone(),
                    context_id: self.task.context.clone(),
                    artifact: *artifact,
                    append: false,
                    last_chunk: true,
                    metadata: None,
                };
                events.extend([Event::ArtifactUpdate(update), Event::StatusUpdate(end)]);
                core.output.pushed += 1;
            }
            ResultVerdict::Bad { problem, .. } if is_repair(&current.message) => {
                let metadata = fail(&mut end, problem, Reason::AgentError);
                if let Ok(detail) = Json::from_serialize(INVALID_RESULT) {
                    metadata.insert(REASON_DETAIL_KEY, detail);
                }
                core.output.state = TaskState::Failed;
                events.push(Event::StatusUpdate(end));
            }
            ResultVerdict::Bad { request, .. } => {
                end.status.state = TaskState::Working;
                core.turn.set_progress(RunProgress::Over);
                core.output.state = TaskState::Working;
                let message = self.repair(&skill, request);
                let again = Received {
                    accepted_output_modes: current.accepted_output_modes.clone(),
                    metadata: current.metadata.clone(),
                    trace: current.trace.clone(),
                    extensions: current.extensions.clone(),
                    ..Received::new(message, engine.clock.now())
                };
                events.extend([Event::StatusUpdate(end), Event::Received(Arc::new(again))]);
                core.output.pushed += 1;
            }
        }
        Batch::of(events)
    }

    /// The message that asks for the result once more.
    fn repair(&self, skill: &str, request: String) -> Message {
        let mut metadata = Metadata::default();
        if let (Ok(skill), Ok(mark)) = (Json::from_serialize(skill), Json::from_serialize(&true)) {
            metadata.insert("skill", skill);
            metadata.insert(REPAIR_KEY, mark);
        }
        Message {
            task_id: Some(self.task.id.clone()),
            context_id: Some(self.task.context.clone()),
            metadata: Some(metadata),
            ..Message::text(Role::User, request)
        }
    }
}

/// Makes a terminal status that of a failure.
fn fail(end: &mut TaskStatusUpdate, problem: String, reason: Reason) -> &mut Metadata {
    end.status.state = TaskState::Failed;
    end.status.message = Some(Message::text(Role::Agent, problem));
    let metadata = end.metadata.get_or_insert_default();
    metadata.merge(&reason.metadata().unwrap_or_default());
    metadata
}

/// Callers cannot write this key.
pub(crate) fn is_repair(message: &Message) -> bool {
    message.metadata.as_ref().is_some_and(|metadata| metadata.get(REPAIR_KEY).is_some())
}
