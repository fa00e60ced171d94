//! Checks of SubscribeToTask: resubscribing after a lost connection, and several subscribers at the same time.

use serde_json::Value;
use switchboard_a2a::extension::RESUMPTION;
use switchboard_a2a::{ErrorKind, TaskId};

use crate::artifacts::Artifacts;
use crate::interface::{ReadUntil, Reconnection, RecordedStream, StreamEnd, TestedInterface};
use crate::operations::ENDED;
use crate::verdict::{CheckResult, OrSkip, Verdict, applies_if, fail, no_problems, skip};
use crate::wire::{self, Event, short};

const NOT_RECONNECTED: &str = "no stream with a task could be begun and left";

/// Whether version 1.0 demands subscriptions here.
fn applies(interface: &TestedInterface) -> CheckResult {
    applies_if(interface.agent.has_capability("streaming"), "the card does not declare streaming")?;
    applies_if(interface.is_v1(), "version 0.3 leaves it open")
}

pub(crate) async fn goes_on(interface: &TestedInterface) -> CheckResult {
    let reconnection = interface.reconnection().await.or_skip(NOT_RECONNECTED)?;
    let state = |task: &Value| wire::state(interface.dialect(), task);
    let Some(now) = reconnection.task.result() else {
        return reconnection.task.failure_because("it cannot be read").about_task(&reconnection.id);
    };
    let usual =
        interface.first_task().await.or_skip("it is not known what becomes of the task where its caller stays")?;
    let is_settled = |task: &Value| interface.is_settled(task);
    let (usual_state, now_state) = (state(usual).unwrap_or("unknown"), state(now).unwrap_or("unknown"));
    match () {
        () if is_settled(now) && matches!(now_state, "canceled" | "failed") && now_state != usual_state => {
            let seen = format!("it is {now_state}, and {usual_state} where its caller stays");
            fail(&reconnection.before.reply.sent, seen)
        }
        () if is_settled(now) => Ok(()),
        () if is_settled(usual) => {
            let took = interface.first().await.reply.took.as_secs_f64();
            let seen =
                format!("it is still {now_state}; where its caller stays, it is {usual_state} after {took:.1} s");
            fail(&reconnection.before.reply.sent, seen)
        }
        () => skip("the agent takes longer than it is waited for"),
    }
}

pub(crate) async fn unknown(interface: &TestedInterface) -> CheckResult {
    applies(interface)?;
    interface.subscribe(TaskId::generate().as_str(), ReadUntil::First).await.reply.expect(&[ErrorKind::TaskNotFound])
}

pub(crate) async fn ended(interface: &TestedInterface) -> CheckResult {
    applies(interface)?;
    let id = interface.ended().await.or_skip("no task has ended")?;
    let recorded = interface.subscribe(id, ReadUntil::First).await;
    if recorded.is_stream() {
        let begin = recorded.events.first().map(short).unwrap_or_default();
        return fail(&recorded.reply.sent, format!("a stream: {begin}"));
    }
    recorded.reply.expect(&[ErrorKind::UnsupportedOperation]).about_task(id)
}

/// The reconnection, if it came before the task had ended.
fn before_end<'a>(interface: &TestedInterface, reconnection: Option<&'a Reconnection>) -> Option<&'a Reconnection> {
    reconnection.filter(|reconnection| begins_with(interface, &reconnection.subscribed[0], &reconnection.id))
}

/// A task that has probably not ended.
async fn open_task(interface: &TestedInterface) -> CheckResult<String> {
    if let Some(id) = interface.running().await {
        return Ok(id.to_owned());
    }
    // A task whose message was answered with an error can be subscribed to as well.
    let unanswered = interface.unanswered_task().await.ok().and_then(|task| task["id"].as_str());
    unanswered.map(str::to_owned).or_skip("the agent has made no task")
}

pub(crate) async fn open(interface: &TestedInterface) -> CheckResult {
    applies(interface)?;
    if before_end(interface, interface.reconnection().await).is_some() {
        return Ok(());
    }
    let id = open_task(interface).await?;
    let recorded = interface.subscribe(&id, ReadUntil::First).await;
    if begins_with(interface, &recorded, &id) { Ok(()) } else { not_begun_with_task(interface, &recorded, &id).await }
}

pub(crate) async fn follows(interface: &TestedInterface) -> CheckResult {
    let reconnection = interface.reconnection().await.or_skip(NOT_RECONNECTED)?;
    let recorded = &reconnection.subscribed[0];
    applies_if(
        recorded.is_stream() && !recorded.events.is_empty(),
        if interface.is_v1() { ENDED } else { "version 0.3 leaves it open" },
    )?;
    let Some(task) = reconnection.task.result() else {
        return reconnection.task.failure().about_task(&reconnection.id);
    };
    let has_heard_it = recorded.terminal_at.is_some() || recorded.is_interrupted;
    let count = recorded.events.len();
    match recorded.end {
        _ if matches!(recorded.reply.content, crate::reply::ReplyContent::Error(_)) => {
            return fail(&recorded.reply.sent, format!("after {count} events came {}", recorded.reply.seen));
        }
        _ if has_heard_it => {}
        StreamEnd::Closed | StreamEnd::Broken => {
            let seen = format!("the stream was over after {count} events, and the task had not ended");
            return fail(&recorded.reply.sent, seen);
        }
        _ if recorded.missed_terminal => {
            let seen = format!("of the end nothing was heard; the task is {}", short(&task["status"]["state"]));
            return fail(&recorded.reply.sent, seen);
        }
        _ => return skip("the task did not end while it was listened to"),
    }
    if recorded.terminal_at.is_some() && recorded.end == StreamEnd::Abandoned && interface.is_v1() {
        return fail(&recorded.reply.sent, "the stream was still open 3 s after the task had ended");
    }
    // Earlier content is in the task that comes first, which only 1.0 demands.
    if !begins_with(interface, recorded, &reconnection.id) || !interface.has_ended(task) {
        return Ok(());
    }
    let streamed = Artifacts::of_stream(interface.dialect(), &recorded.events);
    no_problems(streamed.difference(&Artifacts::of_task(task)), &recorded.reply.sent)
}

pub(crate) async fn twice(interface: &TestedInterface) -> CheckResult {
    applies(interface)?;
    if let Some(reconnection) = before_end(interface, interface.reconnection().await) {
        let [one, other] = &reconnection.subscribed;
        if !begins_with(interface, other, &reconnection.id) {
            return not_begun_with_task(interface, other, &reconnection.id).await;
        }
        let have_all = [one, other].iter().all(|recorded| recorded.terminal_at.is_some());
        // A later subscriber gets more in the task and fewer events after it.
        let is_same = one.events[1..].ends_with(&other.events[1..]) || other.events[1..].ends_with(&one.events[1..]);
        if have_all && !is_same {
            let (one, other) = (one.events.len(), other.events.len());
            return fail(&reconnection.before.reply.sent, format!("{one} events and {other} that are others"));
        }
        return Ok(());
    }
    let id = open_task(interface).await?;
    let (one, other) =
        tokio::join!(interface.subscribe(&id, ReadUntil::First), interface.subscribe(&id, ReadUntil::First));
    for recorded in [one, other] {
        if !begins_with(interface, &recorded, &id) {
            return not_begun_with_task(interface, &recorded, &id).await;
        }
    }
    Ok(())
}

pub(crate) async fn resumes(interface: &TestedInterface) -> CheckResult {
    let reconnection = interface.reconnection().await.or_skip(NOT_RECONNECTED)?;
    let resumed = reconnection.resumed.as_ref().or_skip("the events have no ids")?;
    let is_promised = wire::entries(&interface.agent.card["capabilities"]["extensions"])
        .any(|extension| extension["uri"] == RESUMPTION);
    if !resumed.is_stream() {
        return match is_promised {
            true => resumed.reply.failure_because("the card promises to go on at any time"),
            false => skip(ENDED),
        };
    }
    if let Some(id) =
        resumed.ids.iter().flatten().find(|id| reconnection.before.ids.iter().flatten().any(|old| old == *id))
    {
        return fail(&resumed.reply.sent, format!("the id {id:?} was another event's before"));
    }
    // The resumed stream holds at least the events a subscriber of the same moment gets after the task.
    let subscribed = &reconnection.subscribed[0];
    let (expected, found) = (subscribed.ids.get(1..).unwrap_or_default(), &resumed.ids);
    let are_over = [subscribed, resumed].iter().all(|recorded| recorded.terminal_at.is_some());
    if is_promised && are_over && !found.ends_with(expected) {
        let (expected, found) = (expected.len(), found.len());
        return fail(&resumed.reply.sent, format!("{found} events, and not the {expected} that came meanwhile"));
    }
    Ok(())
}

fn begins_with(interface: &TestedInterface, recorded: &RecordedStream, id: &str) -> bool {
    let first = recorded.events.first().map(|frame| wire::event(interface.dialect(), frame));
    recorded.is_stream() && matches!(first, Some(Event::Task(task)) if task["id"] == id)
}

/// A stream that did not begin with the task: a failure, unless the task had ended by then.
async fn not_begun_with_task(interface: &TestedInterface, recorded: &RecordedStream, id: &str) -> CheckResult {
    applies_if(!interface.has_ended_now(id).await, ENDED)?;
    match recorded.events.first() {
        Some(frame) => fail(&recorded.reply.sent, format!("the first event is {}", short(frame))),
        None => recorded.reply.failure().about_task(id),
    }
}
