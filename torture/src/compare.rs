//! Holds a server to what was acknowledged before it was killed: every task, ending, event and key.

use std::net::SocketAddr;

use serde_json::json;

use crate::calls::{self, Answer, Send, TaskFacts, is_terminal};
use crate::event_stream::Frame;
use crate::http::Connection;
use crate::journal::{Facts, Known, told};

/// What does not hold, one line each.
pub type Problems = Vec<String>;

/// Waits until no task works any more but those that are meant to, then compares everything.
pub fn compare(address: SocketAddr, facts: &Facts) -> anyhow::Result<Problems> {
    let mut problems = Problems::new();
    settle(address, &mut problems)?;
    if !problems.is_empty() {
        // Whatever else is asked would have to wait for the same task.
        return Ok(problems);
    }
    let mut connection = Connection::open(address)?;
    for (id, known) in &facts.tasks {
        task(&mut connection, id, known, &mut problems)?;
    }
    for (key, (send, answers)) in &facts.keyed {
        repeat(&mut connection, key, send, answers, &mut problems)?;
    }
    release(&mut connection, &mut problems)?;
    Ok(problems)
}

/// Whether every ending that was acknowledged is still the ending; for tasks of long ago.
pub fn endings(address: SocketAddr, facts: &Facts) -> anyhow::Result<Problems> {
    let mut problems = Problems::new();
    let mut connection = Connection::open(address)?;
    for (id, known) in &facts.tasks {
        ending(&mut connection, id, known, &mut problems)?;
    }
    Ok(problems)
}

/// No task is left behind: what was running is taken up and comes to an end, or goes on if it was told to.
fn settle(address: SocketAddr, problems: &mut Problems) -> anyhow::Result<()> {
    let mut connection = Connection::open(address)?;
    for state in ["TASK_STATE_SUBMITTED", "TASK_STATE_WORKING"] {
        for (facts, text) in calls::list(&mut connection, &json!({ "status": state }))? {
            if text != "hold" && problems.is_empty() {
                wait(address, &facts, problems)?;
            }
        }
    }
    Ok(())
}

/// Follows a task until it ends or asks. A stream that stays silent too long is an error of the connection.
fn wait(address: SocketAddr, facts: &TaskFacts, problems: &mut Problems) -> anyhow::Result<()> {
    // Given up in the middle of a stream, so it has a connection of its own.
    let mut connection = Connection::open(address)?;
    let mut stopped = false;
    let watched = calls::subscribe(&mut connection, "/a2a", &facts.id, None, |frame| {
        let data = &frame.data;
        stopped = stopped || data.contains("TASK_STATE_INPUT_REQUIRED");
        !stopped
    });
    match watched {
        // It ended before we asked.
        Ok(Some(refusal)) if refusal.code == -32004 => {}
        Ok(Some(refusal)) => problems.push(format!("task {} cannot be watched: {refusal:?}", facts.id)),
        Ok(None) => {}
        Err(error) => problems.push(format!("task {} was left {}: {error}", facts.id, facts.state)),
    }
    Ok(())
}

fn task(connection: &mut Connection, id: &str, known: &Known, problems: &mut Problems) -> anyhow::Result<()> {
    let now = match calls::get(connection, known.path, id)? {
        Ok(now) => now,
        Err(refusal) => {
            problems.push(format!("task {id} was acknowledged and is gone: {refusal:?}"));
            return Ok(());
        }
    };
    if !known.frames.is_empty() || known.opening.is_some() {
        stream(connection, id, known, &now, problems)?;
    }
    let Some(before) = &known.last else { return Ok(()) };
    let holds = match before.state.as_str() {
        state if is_terminal(state) => now == *before,
        "TASK_STATE_INPUT_REQUIRED" if known.touched => now.state == before.state || now.is_terminal(),
        "TASK_STATE_INPUT_REQUIRED" => now == *before,
        // Working without end goes on after the restart, unless a cancel arrived.
        _ => now.is_terminal() || now.state == "TASK_STATE_WORKING",
    };
    if !holds {
        problems.push(format!("task {id} was {before:?} and is {now:?}"));
    }
    Ok(())
}

fn ending(connection: &mut Connection, id: &str, known: &Known, problems: &mut Problems) -> anyhow::Result<()> {
    let Some(before) = known.last.as_ref().filter(|last| last.is_terminal()) else { return Ok(()) };
    match calls::get(connection, known.path, id)? {
        Ok(now) if now == *before => {}
        now => problems.push(format!("task {id} was {before:?} and is {now:?}")),
    }
    Ok(())
}

/// Resumes after the first frame and from the middle: every event that was acknowledged comes again, under its id, byte
/// for byte, and together they make the task.
fn stream(
    connection: &mut Connection,
    id: &str,
    known: &Known,
    now: &TaskFacts,
    problems: &mut Problems,
) -> anyhow::Result<()> {
    let Some(opening) = &known.opening else {
        problems.push(format!("the stream of task {id} did not begin with the task"));
        return Ok(());
    };
    let (state, text) = match resume(connection, id, known, &opening.id, &known.frames)? {
        Ok(again) => told(&again),
        Err(problem) => {
            problems.push(problem);
            return Ok(());
        }
    };
    if (&state, &text) != (&now.state, &now.text) {
        problems.push(format!("task {id} is {now:?}, and its events say {state} {text:?}"));
    }
    let middle = known.frames.len() / 2;
    if let Some(frame) = known.frames.get(middle) {
        problems.extend(resume(connection, id, known, &frame.id, &known.frames[middle + 1..])?.err());
    }
    Ok(())
}

/// What comes after a cursor, if it begins with what came after it before.
fn resume(
    connection: &mut Connection,
    id: &str,
    known: &Known,
    cursor: &str,
    before: &[Frame],
) -> anyhow::Result<Result<Vec<Frame>, String>> {
    let mut again: Vec<Frame> = Vec::new();
    let refused = calls::subscribe(connection, known.path, id, Some(cursor), |frame| {
        again.push(frame);
        true
    })?;
    if let Some(refusal) = refused {
        return Ok(Err(format!("task {id} cannot be resumed after {cursor}: {refusal:?}")));
    }
    for (place, frame) in before.iter().enumerate() {
        if again.get(place) != Some(frame) {
            let found = again.get(place);
            return Ok(Err(format!("task {id} after {cursor}: {frame:?} was acknowledged, and there is {found:?}")));
        }
    }
    Ok(Ok(again))
}

/// A key that was used before the crash, with or without an answer, does its work exactly once.
fn repeat(
    connection: &mut Connection,
    key: &str,
    send: &Send,
    answers: &[Answer],
    problems: &mut Problems,
) -> anyhow::Result<()> {
    let first = name(&send.call(connection)?);
    let second = name(&send.call(connection)?);
    // "Try again" was no answer yet.
    let answered = answers.iter().filter(|answer| !answer.is_retryable());
    let same = answered.map(name).chain([second.clone()]).all(|other| other == first);
    if !same {
        problems.push(format!("key {key} was answered {answers:?}, then {first}, then {second}"));
    }
    if let Some(context) = send.context() {
        let tasks = calls::list(connection, &json!({ "contextId": context }))?;
        if tasks.len() != 1 {
            problems.push(format!("key {key} made {} tasks: {tasks:?}", tasks.len()));
        }
    }
    if let Answer::Task(facts) = send.call(connection)? {
        let id = send.message_id();
        let times = facts.messages.iter().filter(|message| *message == id).count();
        if times != 1 {
            problems.push(format!("message {id} stands {times} times in task {}", facts.id));
        }
    }
    Ok(())
}

/// What an answer is about. A message to a task that has moved on is refused, and that is one answer too.
fn name(answer: &Answer) -> String {
    match answer {
        Answer::Task(facts) => format!("task {}", facts.id),
        Answer::Message(id) => format!("message {id}"),
        Answer::Refused(refusal) => format!("error {}", refusal.code),
    }
}

/// Work without end still hears that it should stop.
fn release(connection: &mut Connection, problems: &mut Problems) -> anyhow::Result<()> {
    for (facts, text) in calls::list(connection, &json!({ "status": "TASK_STATE_WORKING" }))? {
        match calls::cancel(connection, "/a2a", &facts.id)? {
            Ok(canceled) if canceled.state == "TASK_STATE_CANCELED" => {}
            other => problems.push(format!("task {} ({text}) could not be canceled: {other:?}", facts.id)),
        }
    }
    let left = calls::list(connection, &json!({ "status": "TASK_STATE_SUBMITTED" }))?;
    if !left.is_empty() {
        problems.push(format!("no turn was started for {left:?}"));
    }
    Ok(())
}
