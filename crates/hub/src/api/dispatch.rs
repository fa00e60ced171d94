//! `POST /api/dispatch`: a message to the agent that routing picks, or to several.

use http::{Method, Response, StatusCode};
use serde::Serialize;
use serde_json::json;
use switchboard_a2a::{Json, Message, Metadata, Part};
use switchboard_engine::AgentName;
use switchboard_host::config::time_span::TimeSpan;
use switchboard_server::{Body, idempotency_key, trace_headers};

use super::error::ApiError;
use super::fields::Fields;
use super::request::ApiRequest;
use super::route::{Header, Parameter, Route};
use crate::dispatch::{Dispatch, DispatchHints, DispatchResult, dispatch};
use crate::tasks::fanout_plan::FanoutPolicy;

pub(super) const ROUTE: Route =
    Route::new(Method::POST, "/api/dispatch", "Send a message to the agent that routing picks", |request| {
        Box::pin(answer(request))
    })
    .body(&[
        Parameter::new("message", "The text; it or `parts` is required.").text(),
        Parameter::new("parts", "The parts of an A2A 1.0 message, in place of a text.").list(),
        Parameter::new("skill", "The id of the skill that is wanted.").text(),
        Parameter::new("targets", "The agents that are to serve it, or `all`.").names(),
        Parameter::new("fanout", "`all`, `first`, `quorum`, `quorum:N` or `failover`: several agents serve it.").text(),
        Parameter::new("force", "Whether a target serves it even without the skill.").flag(),
        Parameter::new("contextId", "The conversation that it belongs to.").text(),
        Parameter::new("taskId", "The task that it goes on with.").text(),
        Parameter::new("metadata", "The metadata of the message.").object(),
        Parameter::new("wait", "How long to wait for the task to stop, such as `30s`; not at all if absent.").text(),
    ])
    .headers(&[Header::IdempotencyKey, Header::Trace])
    .sending();

/// Connections are not held for longer; a caller with more time polls.
const LONGEST_WAIT: TimeSpan = TimeSpan::from_minutes(10);

/// The answer of an agent that replies with a message in place of a task. It is no `serde_json::Value`, which cannot hold all
/// that a message may have, such as `1e400`.
#[derive(Serialize)]
struct Reply<'a> {
    message: &'a Message,
}

async fn answer(mut request: ApiRequest<'_>) -> Result<Response<Body>, ApiError> {
    let headers = &request.exchange.parts.headers;
    let key = idempotency_key::read(headers).map_err(ApiError::Protocol)?;
    let trace = trace_headers::read(headers).map_err(ApiError::Protocol)?;
    let max_parts = request.hub.parts.config.limits.parts.get();
    let mut fields = request.fields().await?;
    let parts = parts(&mut fields, "message", max_parts);
    let hints = DispatchHints {
        skill: fields.optional_text("skill", "the id of a skill"),
        targets: fields.names("targets"),
        fanout: fanout(&mut fields),
        force: fields.flag("force"),
        ..DispatchHints::default()
    };
    let metadata = metadata(&mut fields, &hints);
    let task = fields.optional_text("taskId", "the id of a task");
    let agent = task.as_ref().and_then(|_| agent_of_task(&mut fields, &hints));
    let ordered = Dispatch {
        parts,
        hints,
        context: fields.optional_text("contextId", "the id of a conversation").map(Into::into),
        task: task.map(Into::into),
        agent,
        metadata,
        key,
        request: None,
        trace,
        wait: fields.span("wait", LONGEST_WAIT),
    };
    fields.finish()?;
    let done = dispatch(request.hub, request.caller(), ordered).await?;
    Ok(match done.result {
        DispatchResult::Stopped(task) => request.answer(StatusCode::OK, &task),
        DispatchResult::Replied(message) => request.answer(StatusCode::OK, &Reply { message: &message }),
        DispatchResult::Pending(_) => {
            let poll_url = format!("/api/tasks/{}", done.task);
            let answer = json!({ "taskId": done.task, "contextId": done.context, "pollUrl": poll_url });
            request.answer(StatusCode::ACCEPTED, &answer)
        }
    })
}

/// The content: a text under this name, or parts.
pub(super) fn parts(fields: &mut Fields, name: &str, max: usize) -> Vec<Part> {
    let text = fields.optional_text(name, "a text");
    match (text, fields.value("parts")) {
        (Some(text), None) => vec![Part::text(text)],
        (Some(_), Some(_)) => {
            fields.problem("parts", format!("are there beside {name}"), "one of the two");
            Vec::new()
        }
        (None, None) => {
            if !fields.has_problem(name) {
                fields.problem(name, "is missing", "a text, or parts in its place");
            }
            Vec::new()
        }
        (None, Some(given)) => parts_of(fields, &given, max),
    }
}

/// The parts of a message as the member `parts` has them.
pub(super) fn parts_of(fields: &mut Fields, given: &Json, max: usize) -> Vec<Part> {
    let parts = given.read::<Vec<Json>>().unwrap_or_default();
    if parts.is_empty() {
        fields.problem("parts", "are no list of parts", "a list with at least one part");
        return Vec::new();
    }
    if parts.len() > max {
        fields.problem("parts", format!("are {}", parts.len()), &format!("at most {max} (limits.parts)"));
        return Vec::new();
    }
    let mut read = Vec::with_capacity(parts.len());
    for (index, part) in parts.iter().enumerate() {
        match part.read() {
            Ok(part) => read.push(part),
            Err(error) => {
                let right = "a part of A2A 1.0: text, raw, url or data";
                fields.problem(&format!("parts[{index}]"), error.to_string(), right);
            }
        }
    }
    read
}

/// The agent that the task has to be of, if a target is named beside it. The task has its agent and its policy already.
fn agent_of_task(fields: &mut Fields, hints: &DispatchHints) -> Option<AgentName> {
    if hints.fanout.is_some() {
        fields.problem("fanout", "is there beside taskId", "one of the two: a task goes on as it has begun");
    }
    match hints.targets.as_slice() {
        [] => None,
        [one] => Some(AgentName::from(one.as_str())),
        many => {
            let wrong = format!("are {} beside taskId", many.len());
            fields.problem("targets", wrong, "none: a task goes on with its agent");
            None
        }
    }
}

fn fanout(fields: &mut Fields) -> Option<String> {
    let right = "all, first, quorum, quorum:N or failover";
    let given = fields.optional_text("fanout", right)?;
    if given.parse::<FanoutPolicy>().is_err() {
        let shown: String = given.chars().take(80).collect();
        fields.problem("fanout", format!("is {shown:?}"), right);
    }
    Some(given)
}

/// The metadata of the message. Hints may stand there too, as in a message that comes over A2A, but not beside a member that
/// says the same: the message's own would win.
fn metadata(fields: &mut Fields, hints: &DispatchHints) -> Option<Metadata> {
    let given = fields.value("metadata")?;
    let Ok(read) = given.read::<Metadata>() else {
        fields.problem("metadata", "is no object", "an object");
        return None;
    };
    let members = [
        ("skill", hints.skill.is_some()),
        ("targets", !hints.targets.is_empty()),
        ("fanout", hints.fanout.is_some()),
        ("force", hints.force),
    ];
    for (member, _) in members.into_iter().filter(|(member, is_given)| *is_given && read.get(member).is_some()) {
        fields.problem(&format!("metadata.{member}"), format!("is there beside {member}"), "one of the two");
    }
    if hints.skill.is_some() && read.get("skillHint").is_some() {
        fields.problem("metadata.skillHint", "is there beside skill", "one of the two");
    }
    Some(read)
}
