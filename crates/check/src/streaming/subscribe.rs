//! Whether a task can be listened to again, by whoever has lost the connection and by others at the same time.

use serde_json::Value;
use switchboard_a2a::extension::RESUMPTION;
use switchboard_a2a::{ErrorKind, TaskId};

use crate::artifacts::Artifacts;
use crate::checks::{Check, Group, Run, Severity};
use crate::line::{Ending, Heard, Left, Line, Until};
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
        run: Run::Interface(|line| Box::pin(goes_on(line))),
    },
    Check {
        id: "subscribe-unknown",
        group: Group::Streaming,
        title: "subscribing to a task that does not exist is refused with -32001",
        rule: "A2A 1.0 §3.1.6",
        severity: Severity::Must,
        fix: "answer TaskNotFoundError",
        run: Run::Interface(|line| Box::pin(unknown(line))),
    },
    Check {
        id: "subscribe-ended",
        group: Group::Streaming,
        title: "subscribing to a task that has ended is refused with -32004",
        rule: "A2A 1.0 §3.1.6",
        severity: Severity::Must,
        fix: "answer UnsupportedOperationError",
        run: Run::Interface(|line| Box::pin(ended(line))),
    },
    Check {
        id: "subscribe-open",
        group: Group::Streaming,
        title: "any task that has not ended can be subscribed to, and the stream begins with it",
        rule: "A2A 1.0 §3.1.6",
        severity: Severity::Must,
        fix: "let SubscribeToTask find tasks in the store, not only those at work in this process",
        run: Run::Interface(|line| Box::pin(open(line))),
    },
    Check {
        id: "subscribe-follows",
        group: Group::Streaming,
        title: "a subscriber hears everything from then on to the end of the task",
        rule: "A2A 1.0 §3.1.6, §3.5.2; 0.3 §7.9",
        severity: Severity::Must,
        fix: "send subscribers the task as it is and every update after that, and close when it has ended",
        run: Run::Interface(|line| Box::pin(follows(line))),
    },
    Check {
        id: "subscribe-twice",
        group: Group::Streaming,
        title: "a task can be subscribed to more than once at the same time, and all hear the same",
        rule: "A2A 1.0 §3.5.2 allows it",
        severity: Severity::Quality,
        fix: "send events to every stream of the task, in the same order",
        run: Run::Interface(|line| Box::pin(twice(line))),
    },
    Check {
        id: "subscribe-resumes",
        group: Group::Streaming,
        title: "where events have ids, Last-Event-ID goes on after that event",
        rule: "A2A leaves it open; WHATWG HTML §9.2.4",
        severity: Severity::Quality,
        fix: "number the events of a task, not those of a stream, and read Last-Event-ID; or send no ids",
        run: Run::Interface(|line| Box::pin(resumes(line))),
    },
];

const NOT_LEFT: &str = "no stream with a task could be begun and left";

/// Why subscribing need not work here, if it need not.
fn exempt(line: &Line) -> Option<Verdict> {
    let why = match () {
        () if !line.subject.can("streaming") => "the card does not declare streaming",
        () if !line.is_v1() => "version 0.3 leaves it open",
        () => return None,
    };
    Some(Verdict::not_applicable(why))
}

async fn goes_on(line: &Line) -> Verdict {
    let Some(left) = line.left().await else {
        return Verdict::not_applicable(NOT_LEFT);
    };
    let state = |task: &Value| wire::state(line.dialect(), task);
    let Some(now) = left.task.result() else {
        return left.task.complaint_that("it cannot be read").about(&left.id);
    };
    let Some(usual) = line.first_task().await else {
        return Verdict::not_applicable("it is not known what becomes of the task where its caller stays");
    };
    let is_settled = |task: &Value| line.is_settled(task);
    let (usual_state, now_state) = (state(usual).unwrap_or("unknown"), state(now).unwrap_or("unknown"));
    match () {
        () if is_settled(now) && matches!(now_state, "canceled" | "failed") && now_state != usual_state => {
            let seen = format!("it is {now_state}, and {usual_state} where its caller stays");
            Verdict::fail(&left.before.reply.sent, seen)
        }
        () if is_settled(now) => Verdict::pass(),
        () if is_settled(usual) => {
            let took = line.first().await.reply.took.as_secs_f64();
            let seen =
                format!("it is still {now_state}; where its caller stays, it is {usual_state} after {took:.1} s");
            Verdict::fail(&left.before.reply.sent, seen)
        }
        () => Verdict::not_applicable("the agent takes longer than it is waited for"),
    }
}

async fn unknown(line: &Line) -> Verdict {
    if let Some(verdict) = exempt(line) {
        return verdict;
    }
    line.subscribe(TaskId::generate().as_str(), Until::First).await.reply.expect(&[ErrorKind::TaskNotFound])
}

async fn ended(line: &Line) -> Verdict {
    if let Some(verdict) = exempt(line) {
        return verdict;
    }
    let Some(id) = line.ended().await else {
        return Verdict::not_applicable("no task has ended");
    };
    let heard = line.subscribe(id, Until::First).await;
    if heard.is_stream() {
        let begin = heard.events.first().map(short).unwrap_or_default();
        return Verdict::fail(&heard.reply.sent, format!("a stream: {begin}"));
    }
    heard.reply.expect(&[ErrorKind::UnsupportedOperation]).about(id)
}

/// Whether the subscription to the task that was left came in time.
fn in_time<'a>(line: &Line, left: Option<&'a Left>) -> Option<&'a Left> {
    left.filter(|left| begins_with(line, &left.subscribed[0], &left.id))
}

/// A task that has not ended, as far as one can tell.
async fn open_task(line: &Line) -> Result<String, Verdict> {
    if let Some(id) = line.running().await {
        return Ok(id.to_owned());
    }
    // One whose work came to nothing can be asked about all the same.
    let behind = line.behind().await.ok().and_then(|task| task["id"].as_str().map(str::to_owned));
    behind.ok_or_else(|| Verdict::not_applicable("the agent has made no task"))
}

async fn open(line: &Line) -> Verdict {
    if let Some(verdict) = exempt(line) {
        return verdict;
    }
    if in_time(line, line.left().await).is_some() {
        return Verdict::pass();
    }
    let id = match open_task(line).await {
        Ok(id) => id,
        Err(verdict) => return verdict,
    };
    let heard = line.subscribe(&id, Until::First).await;
    if begins_with(line, &heard, &id) { Verdict::pass() } else { judged(line, &heard, &id).await }
}

async fn follows(line: &Line) -> Verdict {
    let Some(left) = line.left().await else {
        return Verdict::not_applicable(NOT_LEFT);
    };
    let heard = &left.subscribed[0];
    if !heard.is_stream() || heard.events.is_empty() {
        return Verdict::not_applicable(if line.is_v1() { ENDED } else { "version 0.3 leaves it open" });
    }
    let Some(task) = left.task.result() else {
        return left.task.complaint().about(&left.id);
    };
    let has_heard_it = heard.end_at.is_some() || heard.is_paused;
    let count = heard.events.len();
    match heard.ending {
        _ if matches!(heard.reply.said, crate::answer::Said::Refused(_)) => {
            return Verdict::fail(&heard.reply.sent, format!("after {count} events came {}", heard.reply.seen));
        }
        _ if has_heard_it => {}
        Ending::Closed | Ending::Broken => {
            let seen = format!("the stream was over after {count} events, and the task had not ended");
            return Verdict::fail(&heard.reply.sent, seen);
        }
        _ if heard.has_missed_the_end => {
            let seen = format!("of the end nothing was heard; the task is {}", short(&task["status"]["state"]));
            return Verdict::fail(&heard.reply.sent, seen);
        }
        _ => return Verdict::not_applicable("the task did not end while it was listened to"),
    }
    if heard.end_at.is_some() && heard.ending == Ending::Left && line.is_v1() {
        return Verdict::fail(&heard.reply.sent, "the stream was still open 3 s after the task had ended");
    }
    // What went before is in the task that comes first, which only 1.0 demands.
    if !begins_with(line, heard, &left.id) || !line.has_ended(task) {
        return Verdict::pass();
    }
    match Artifacts::of_stream(line.dialect(), &heard.events).difference(&Artifacts::of_task(task)) {
        None => Verdict::pass(),
        Some(difference) => Verdict::fail(&heard.reply.sent, difference),
    }
}

async fn twice(line: &Line) -> Verdict {
    if let Some(verdict) = exempt(line) {
        return verdict;
    }
    if let Some(left) = in_time(line, line.left().await) {
        let [one, other] = &left.subscribed;
        if !begins_with(line, other, &left.id) {
            return judged(line, other, &left.id).await;
        }
        let have_all = [one, other].iter().all(|heard| heard.end_at.is_some());
        // Who came later finds more in the task, and has fewer events after it.
        let is_same = one.events[1..].ends_with(&other.events[1..]) || other.events[1..].ends_with(&one.events[1..]);
        if have_all && !is_same {
            let (one, other) = (one.events.len(), other.events.len());
            return Verdict::fail(&left.before.reply.sent, format!("{one} events and {other} that are others"));
        }
        return Verdict::pass();
    }
    let id = match open_task(line).await {
        Ok(id) => id,
        Err(verdict) => return verdict,
    };
    let (one, other) = tokio::join!(line.subscribe(&id, Until::First), line.subscribe(&id, Until::First));
    for heard in [one, other] {
        if !begins_with(line, &heard, &id) {
            return judged(line, &heard, &id).await;
        }
    }
    Verdict::pass()
}

async fn resumes(line: &Line) -> Verdict {
    let Some(left) = line.left().await else {
        return Verdict::not_applicable(NOT_LEFT);
    };
    let Some(resumed) = &left.resumed else {
        return Verdict::not_applicable("the events have no ids");
    };
    let mut extensions = line.subject.card["capabilities"]["extensions"].as_array().into_iter().flatten();
    let is_promised = extensions.any(|extension| extension["uri"] == RESUMPTION);
    if !resumed.is_stream() {
        return match is_promised {
            true => resumed.reply.complaint_that("the card promises to go on at any time"),
            false => Verdict::not_applicable(ENDED),
        };
    }
    if let Some(id) = resumed.ids.iter().flatten().find(|id| left.before.ids.iter().flatten().any(|old| old == *id)) {
        return Verdict::fail(&resumed.reply.sent, format!("the id {id:?} was another event's before"));
    }
    // Whoever goes on hears at least what whoever came at the same time hears after the task.
    let subscribed = &left.subscribed[0];
    let (expected, found) = (subscribed.ids.get(1..).unwrap_or_default(), &resumed.ids);
    let are_over = [subscribed, resumed].iter().all(|heard| heard.end_at.is_some());
    if is_promised && are_over && !found.ends_with(expected) {
        let (expected, found) = (expected.len(), found.len());
        return Verdict::fail(
            &resumed.reply.sent,
            format!("{found} events, and not the {expected} that came meanwhile"),
        );
    }
    Verdict::pass()
}

fn begins_with(line: &Line, heard: &Heard, id: &str) -> bool {
    let first = heard.events.first().map(|frame| wire::event(line.dialect(), frame));
    heard.is_stream() && matches!(first, Some(Event::Task(task)) if task["id"] == id)
}

/// A stream that did not begin as it should: a fault, unless the task had ended by then.
async fn judged(line: &Line, heard: &Heard, id: &str) -> Verdict {
    if line.is_over(id).await {
        return Verdict::not_applicable(ENDED);
    }
    match heard.events.first() {
        Some(frame) => Verdict::fail(&heard.reply.sent, format!("the first event is {}", short(frame))),
        None => heard.reply.complaint().about(id),
    }
}
