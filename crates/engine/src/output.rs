//! The output of a turn on its way to the log: each event is checked against the task's state and limits.

use switchboard_a2a::{Message, Metadata, TaskState};

use crate::engine::EngineState;
use crate::event::Event;
use crate::handle::Stopped;
use crate::live_task::{Core, LiveTask};
use crate::transition;
use crate::usage::with_usage;

/// Adds a status to the turn's output, if the state may follow the one before.
pub(crate) fn push_status(
    engine: &EngineState,
    live: &LiveTask,
    core: &mut Core,
    state: TaskState,
    message: Option<Message>,
    metadata: Option<Metadata>,
) -> Result<u64, Stopped> {
    if !core.output.state.is_terminal() && !transition::is_legal(core.output.state, state) {
        return Err(Stopped::IllegalState(state));
    }
    let metadata = if state.is_terminal() { with_usage(core, metadata) } else { metadata };
    let at = core.next_status_at(engine.clock.now());
    let mark = push(engine, live, core, live.status_event(state, at, message, metadata))?;
    core.output.state = state;
    Ok(mark)
}

/// Adds an event to the turn's output; says which count of committed events will include it.
pub(crate) fn push(engine: &EngineState, live: &LiveTask, core: &mut Core, event: Event) -> Result<u64, Stopped> {
    let is_lost = core.turn.lost().is_some();
    if is_lost || core.is_done() || core.output.state.is_terminal() {
        engine.count_refused_write();
        return Err(if is_lost { Stopped::Lost } else { Stopped::Ended });
    }
    let ends = event.kind().is_terminal();
    if core.output.state.is_interrupted() && live.may_park(core) && !ends {
        // It is parked and has no owner: only a terminal event is allowed.
        return Err(Stopped::Ended);
    }
    // Internal events are small, and a task at its limit must still get its terminal event and its messages.
    let event_is_sent = event.kind().is_sent();
    let bytes = core.output.batch.push(event);
    let settings = &engine.settings;
    let total = core.bytes + (core.output.batch.bytes() + core.output.in_flight.0) as u64;
    let problem = if bytes > settings.event_bytes {
        Some(format!("an event of {bytes} bytes is over the limit of {} (limits.event)", settings.event_bytes))
    } else if total > settings.task_bytes && !ends && event_is_sent {
        Some(format!("the task is over its limit of {} bytes (limits.task)", settings.task_bytes))
    } else {
        None
    };
    if let Some(problem) = problem {
        core.output.batch.pop();
        return Err(Stopped::TooLarge(problem));
    }
    core.output.pushed += 1;
    live.output.notify_one();
    Ok(core.output.pushed)
}
