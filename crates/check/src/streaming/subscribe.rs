//! Whether a task can be listened to again, by whoever has lost the connection and by others at the same time.

use serde_json::Value;
use switchboard_a2a::extension::RESUMPTION;
use switchboard_a2a::{ErrorKind, TaskId};

use crate::artifacts::Artifacts;
use crate::checks::{Check, Group, Run, Severity};
use crate::interface::{ReadUntil, Reconnection, RecordedStream, StreamEnd, TestedInterface};
use crate::operations::ENDED;
use crate::verdict::Verdict;
use crate::wire::{self, Event, short};

pub(crate) const CHECKS: &[Check] = &[
    Check {
        id: "stream-left",
        group: Group::Streaming,
        title: "a task goes on when the connection to its caller is lost",
        rule: "A2A 1.0 §3.5.2; 0.3 §7.9",
        severity: Severity::Must,
        fix: "do not tie the work to the connection that began it",
        run: Run::Interface(|interface| Box::pin(goes_on(interface))),
    },
    Check {
        id: "subscribe-unknown",
        group: Group::Streaming,
        title: "subscribing to a task that does not exist is refused with -32001",
        rule: "A2A 1.0 §3.1.6",
        severity: Severity::Must,
        fix: "answer TaskNotFoundError",
        run: Run::Interface(|interface| Box::pin(unknown(interface))),
    },
    Check {
        id: "subscribe-ended",
        group: Group::Streaming,
        title: "subscribing to a task that has ended is refused with -32004",
        rule: "A2A 1.0 §3.1.6",
        severity: Severity::Must,
        fix: "answer UnsupportedOperationError",
        run: Run::Interface(|interface| Box::pin(ended(interface))),
    },
    Check {
        id: "subscribe-open",
        group: Group::Streaming,
        title: "any task that has not ended can be subscribed to, and the stream begins with it",
        rule: "A2A 1.0 §3.1.6",
        severity: Severity::Must,
        fix: "let SubscribeToTask find tasks in the store, not only those at work in this process",
        run: Run::Interface(|interface| Box::pin(open(interface))),
    },
    Check {
        id: "subscribe-follows",
        group: Group::Streaming,
        title: "a subscriber hears everything from then on to the end of the task",
        rule: "A2A 1.0 §3.1.6, §3.5.2; 0.3 §7.9",
        severity: Severity::Must,
        fix: "send subscribers the task as it is and every update after that, and close when it has ended",
        run: Run::Interface(|interface| Box::pin(follows(interface))),
    },
    Check {
        id: "subscribe-twice",
        group: Group::Streaming,
        title: "a task can be subscribed to more than once at the same time, and all hear the same",
        rule: "A2A 1.0 §3.5.2 allows it",
        severity: Severity::Quality,
        fix: "send events to every stream of the task, in the same order",
        run: Run::Interface(|interface| Box::pin(twice(interface))),
    },
    Check {
        id: "subscribe-resumes",
        group: Group::Streaming,
        title: "where events have ids, Last-Event-ID goes on after that event",
        rule: "A2A leaves it open; WHATWG HTML §9.2.4",
        severity: Severity::Quality,
        fix: "number the events of a task, not those of a stream, and read Last-Event-ID; or send no ids",
        run: Run::Interface(|interface| Box::pin(resumes(interface))),
    },
];

const NOT_LEFT: &str = "no stream with a task could be begun and left";

/// Why subscribing need not work here, if it need not.
fn exempt(interface: &TestedInterface) -> Option<Verdict> {
    let why = match () {
        () if !interface.agent.has_capability("streaming") => "the card does not declare streaming",
        () if !interface.is_v1() => "version 0.3 leaves it open",
        () => return None,
    };
    Some(Verdict::not_applicable(why))
}

async fn goes_on(interface: &TestedInterface) -> Verdict {
    let Some(left) = interface.reconnection().await else {
        return Verdict::not_applicable(NOT_LEFT);
    };
    let state = |task: &Value| wire::state(interface.dialect(), task);
    let Some(now) = left.task.result() else {
        return left.task.failure_because("it cannot be read").about_task(&left.id);
    };
    let Some(usual) = interface.first_task().await else {
        return Verdict::not_applicable("it is not known what becomes of the task where its caller stays");
    };
    let is_settled = |task: &Value| interface.is_settled(task);
    let (usual_state, now_state) = (state(usual).unwrap_or("unknown"), state(now).unwrap_or("unknown"));
    match () {
        () if is_settled(now) && matches!(now_state, "canceled" | "failed") && now_state != usual_state => {
            let seen = format!("it is {now_state}, and {usual_state} where its caller stays");
            Verdict::fail(&left.before.reply.sent, seen)
        }
        () if is_settled(now) => Verdict::pass(),
        () if is_settled(usual) => {
            let took = interface.first().await.reply.took.as_secs_f64();
            let seen =
                format!("it is still {now_state}; where its caller stays, it is {usual_state} after {took:.1} s");
            Verdict::fail(&left.before.reply.sent, seen)
        }
        () => Verdict::not_applicable("the agent takes longer than it is waited for"),
    }
}

async fn unknown(interface: &TestedInterface) -> Verdict {
    if let Some(verdict) = exempt(interface) {
        return verdict;
    }
    interface.subscribe(TaskId::generate().as_str(), ReadUntil::First).await.reply.expect(&[ErrorKind::TaskNotFound])
}

async fn ended(interface: &TestedInterface) -> Verdict {
    if let Some(verdict) = exempt(interface) {
        return verdict;
    }
    let Some(id) = interface.ended().await else {
        return Verdict::not_applicable("no task has ended");
    };
    let recorded = interface.subscribe(id, ReadUntil::First).await;
    if recorded.is_stream() {
        let begin = recorded.events.first().map(short).unwrap_or_default();
        return Verdict::fail(&recorded.reply.sent, format!("a stream: {begin}"));
    }
    recorded.reply.expect(&[ErrorKind::UnsupportedOperation]).about_task(id)
}

/// Whether the subscription to the task that was left came in time.
fn in_time<'a>(interface: &TestedInterface, left: Option<&'a Reconnection>) -> Option<&'a Reconnection> {
    left.filter(|left| begins_with(interface, &left.subscribed[0], &left.id))
}

/// A task that has not ended, as far as one can tell.
async fn open_task(interface: &TestedInterface) -> Result<String, Verdict> {
    if let Some(id) = interface.running().await {
        return Ok(id.to_owned());
    }
    // One whose work came to nothing can be asked about all the same.
    let unanswered_task =
        interface.unanswered_task().await.ok().and_then(|task| task["id"].as_str().map(str::to_owned));
    unanswered_task.ok_or_else(|| Verdict::not_applicable("the agent has made no task"))
}

async fn open(interface: &TestedInterface) -> Verdict {
    if let Some(verdict) = exempt(interface) {
        return verdict;
    }
    if in_time(interface, interface.reconnection().await).is_some() {
        return Verdict::pass();
    }
    let id = match open_task(interface).await {
        Ok(id) => id,
        Err(verdict) => return verdict,
    };
    let recorded = interface.subscribe(&id, ReadUntil::First).await;
    if begins_with(interface, &recorded, &id) { Verdict::pass() } else { judged(interface, &recorded, &id).await }
}

async fn follows(interface: &TestedInterface) -> Verdict {
    let Some(left) = interface.reconnection().await else {
        return Verdict::not_applicable(NOT_LEFT);
    };
    let recorded = &left.subscribed[0];
    if !recorded.is_stream() || recorded.events.is_empty() {
        return Verdict::not_applicable(if interface.is_v1() { ENDED } else { "version 0.3 leaves it open" });
    }
    let Some(task) = left.task.result() else {
        return left.task.failure().about_task(&left.id);
    };
    let has_heard_it = recorded.terminal_at.is_some() || recorded.is_interrupted;
    let count = recorded.events.len();
    match recorded.end {
        _ if matches!(recorded.reply.content, crate::reply::ReplyContent::Error(_)) => {
            return Verdict::fail(&recorded.reply.sent, format!("after {count} events came {}", recorded.reply.seen));
        }
        _ if has_heard_it => {}
        StreamEnd::Closed | StreamEnd::Broken => {
            let seen = format!("the stream was over after {count} events, and the task had not ended");
            return Verdict::fail(&recorded.reply.sent, seen);
        }
        _ if recorded.missed_terminal => {
            let seen = format!("of the end nothing was heard; the task is {}", short(&task["status"]["state"]));
            return Verdict::fail(&recorded.reply.sent, seen);
        }
        _ => return Verdict::not_applicable("the task did not end while it was listened to"),
    }
    if recorded.terminal_at.is_some() && recorded.end == StreamEnd::Abandoned && interface.is_v1() {
        return Verdict::fail(&recorded.reply.sent, "the stream was still open 3 s after the task had ended");
    }
    // What went before is in the task that comes first, which only 1.0 demands.
    if !begins_with(interface, recorded, &left.id) || !interface.has_ended(task) {
        return Verdict::pass();
    }
    match Artifacts::of_stream(interface.dialect(), &recorded.events).difference(&Artifacts::of_task(task)) {
        None => Verdict::pass(),
        Some(difference) => Verdict::fail(&recorded.reply.sent, difference),
    }
}

async fn twice(interface: &TestedInterface) -> Verdict {
    if let Some(verdict) = exempt(interface) {
        return verdict;
    }
    if let Some(left) = in_time(interface, interface.reconnection().await) {
        let [one, other] = &left.subscribed;
        if !begins_with(interface, other, &left.id) {
            return judged(interface, other, &left.id).await;
        }
        let have_all = [one, other].iter().all(|recorded| recorded.terminal_at.is_some());
        // Who came later finds more in the task, and has fewer events after it.
        let is_same = one.events[1..].ends_with(&other.events[1..]) || other.events[1..].ends_with(&one.events[1..]);
        if have_all && !is_same {
            let (one, other) = (one.events.len(), other.events.len());
            return Verdict::fail(&left.before.reply.sent, format!("{one} events and {other} that are others"));
        }
        return Verdict::pass();
    }
    let id = match open_task(interface).await {
        Ok(id) => id,
        Err(verdict) => return verdict,
    };
    let (one, other) =
        tokio::join!(interface.subscribe(&id, ReadUntil::First), interface.subscribe(&id, ReadUntil::First));
    for recorded in [one, other] {
        if !begins_with(interface, &recorded, &id) {
            return judged(interface, &recorded, &id).await;
        }
    }
    Verdict::pass()
}

async fn resumes(interface: &TestedInterface) -> Verdict {
    let Some(left) = interface.reconnection().await else {
        return Verdict::not_applicable(NOT_LEFT);
    };
    let Some(resumed) = &left.resumed else {
        return Verdict::not_applicable("the events have no ids");
    };
    let mut extensions = interface.agent.card["capabilities"]["extensions"].as_array().into_iter().flatten();
    let is_promised = extensions.any(|extension| extension["uri"] == RESUMPTION);
    if !resumed.is_stream() {
        return match is_promised {
            true => resumed.reply.failure_because("the card promises to go on at any time"),
            false => Verdict::not_applicable(ENDED),
        };
    }
    if let Some(id) = resumed.ids.iter().flatten().find(|id| left.before.ids.iter().flatten().any(|old| old == *id)) {
        return Verdict::fail(&resumed.reply.sent, format!("the id {id:?} was another event's before"));
    }
    // Whoever goes on hears at least what whoever came at the same time hears after the task.
    let subscribed = &left.subscribed[0];
    let (expected, found) = (subscribed.ids.get(1..).unwrap_or_default(), &resumed.ids);
    let are_over = [subscribed, resumed].iter().all(|recorded| recorded.terminal_at.is_some());
    if is_promised && are_over && !found.ends_with(expected) {
        let (expected, found) = (expected.len(), found.len());
        return Verdict::fail(
            &resumed.reply.sent,
            format!("{found} events, and not the {expected} that came meanwhile"),
        );
    }
    Verdict::pass()
}

fn begins_with(interface: &TestedInterface, recorded: &RecordedStream, id: &str) -> bool {
    let first = recorded.events.first().map(|frame| wire::event(interface.dialect(), frame));
    recorded.is_stream() && matches!(first, Some(Event::Task(task)) if task["id"] == id)
}

/// A stream that did not begin as it should: a fault, unless the task had ended by then.
async fn judged(interface: &TestedInterface, recorded: &RecordedStream, id: &str) -> Verdict {
    if interface.has_ended_now(id).await {
        return Verdict::not_applicable(ENDED);
    }
    match recorded.events.first() {
        Some(frame) => Verdict::fail(&recorded.reply.sent, format!("the first event is {}", short(frame))),
        None => recorded.reply.failure().about_task(id),
    }
}
