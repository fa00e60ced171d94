//! How a turn ends when its agent does not say so itself: it returned, failed, panicked, or had to be stopped.

use std::any::Any;

use switchboard_a2a::{Message, Role, TaskState};

use crate::agent::AgentError;
use crate::engine::EngineState;
use crate::handle::Stopped;
use crate::live_task::{Core, LiveTask, RunProgress};
use crate::output::push_status;
use crate::reason::Reason;

/// The longest reason that is kept; an agent may fail with a whole log.
const REASON_BYTES: usize = 8 << 10;

/// What became of a run.
pub(super) type Outcome = Result<Result<(), AgentError>, Box<dyn Any + Send>>;

/// The agent has returned: if the task has not ended, this says how it ends. A run that is over says nothing: its task
/// goes on elsewhere.
pub(super) fn conclude(engine: &EngineState, live: &LiveTask, run: u64, result: Outcome) {
    let mut core = live.core.lock();
    let output = &core.output;
    if output.state.is_terminal() || core.is_done() || !core.turn.is_run(run) {
        return;
    }
    if let Some(reason) = output.stop {
        end_stopped(engine, live, &mut core, reason);
        return;
    }
    // An agent that has asked may return; the answer, which may be here already, is a new run's.
    let progress = core.turn.progress();
    let parked = progress.has_asked() && live.may_park(&core);
    let (reason, text) = match result {
        // It did not expect that the question is settled: a new run does, with its cause.
        Ok(Err(AgentError::Stopped(Stopped::Settled))) if progress.has_asked() => return,
        Ok(Ok(())) if parked || progress == RunProgress::Over => return,
        Ok(Ok(())) => (Reason::NoResult, "the agent ended without a result".to_owned()),
        Ok(Err(AgentError::Stopped(Stopped::TooLarge(problem)))) => (Reason::TooLarge, problem),
        Ok(Err(error)) => (Reason::AgentError, error.to_string()),
        Err(panic) => {
            let panic = panic_text(panic.as_ref());
            tracing::error!(task = %live.task.id, agent = %live.task.agent, panic, "an agent panicked");
            (Reason::Panic, format!("the agent panicked: {panic}"))
        }
    };
    end(engine, live, &mut core, TaskState::Failed, Some(text), reason);
}

/// An agent that did not stop in time was dropped; the task ends without it.
pub(super) fn force_end(engine: &EngineState, live: &LiveTask, run: u64) {
    let mut core = live.core.lock();
    if core.is_done() || core.output.state.is_terminal() || !core.turn.is_run(run) {
        return;
    }
    let reason = core.output.stop.unwrap_or(Reason::CanceledByCaller);
    end_stopped(engine, live, &mut core, reason);
}

pub(super) fn end_stopped(engine: &EngineState, live: &LiveTask, core: &mut Core, reason: Reason) {
    let (state, text) = match reason {
        Reason::CanceledByCaller => (TaskState::Canceled, None),
        Reason::TimedOut => (TaskState::Failed, Some("the task took too long".to_owned())),
        _ => (TaskState::Failed, Some("the agent went silent for too long".to_owned())),
    };
    end(engine, live, core, state, text, reason);
}

fn end(engine: &EngineState, live: &LiveTask, core: &mut Core, state: TaskState, text: Option<String>, reason: Reason) {
    let message = text.map(|text| Message::text(Role::Agent, shortened(text)));
    if push_status(engine, live, core, state, message, reason.metadata()).is_err() {
        // Only a limit smaller than any reason can be in the way.
        let bare = push_status(engine, live, core, state, None, reason.metadata());
        if let Err(error) = bare {
            tracing::error!(task = %live.task.id, %error, "an ending was refused");
        }
    }
}

fn shortened(mut text: String) -> String {
    if text.len() > REASON_BYTES {
        text.truncate(text.floor_char_boundary(REASON_BYTES));
        text.push('…');
    }
    text
}

/// What a panic said.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}
