//! `POST /api/a2a/chat` and `POST /api/a2a/delegate`: a text to an agent by its name, as earlier hubs have it.
//!
//! Each is a dispatch. An `X-Correlation-Id` is its idempotency key, and it is found by that; without one the task's id is
//! the correlation id.

use std::time::Duration;

use http::{Method, Response, StatusCode};
use serde_json::{Value, json};
use switchboard_a2a::{Part, TaskState};
use switchboard_engine::AgentName;
use switchboard_server::{Body, trace_headers};

use super::error::ApiError;
use super::request::ApiRequest;
use super::route::{Header, Parameter, Route};
use crate::dispatch::{Dispatch, DispatchHints, DispatchResult, Dispatched, dispatch};
use crate::reply::{failure, has_failed, state_text, text, text_of};
use crate::routing::ALL;

pub(super) const CHAT: Route =
    Route::new(Method::POST, "/api/a2a/chat", "Ask an agent and wait for its answer", |request| {
        Box::pin(chat(request))
    })
    .enveloped()
    .body(&[
        Parameter::new("agent", "Its name; required.").text(),
        Parameter::new("message", "The text; required.").text(),
        Parameter::new("contextId", "The conversation to go on with.").text(),
        Parameter::new("taskId", "The task to go on with.").text(),
        Parameter::new("skill", "The id of one of its skills; `chat`, which every agent takes, if absent.").text(),
        Parameter::new("done", "The conversation is over: the answer names neither it nor the task.").flag(),
        Parameter::new("dispatcherAgent", "The agent that asks.").text(),
        Parameter::new("returnImmediately", "Not to wait for the answer.").flag(),
    ])
    .headers(&[Header::Trace])
    .sending()
    .refusals(&[(502, "AGENT_ERROR")]);
pub(super) const DELEGATE: Route =
    Route::new(Method::POST, "/api/a2a/delegate", "Give an agent something to do", |request| {
        Box::pin(delegate(request))
    })
    .enveloped()
    .body(&[
        Parameter::new("agent", "Its name; required.").text(),
        Parameter::new("skill", "The id of one of its skills; required.").text(),
        Parameter::new("message", "The text; required.").text(),
        Parameter::new("projectSlug", "The project that it is about.").text(),
        Parameter::new("dispatcherAgent", "The agent that asks.").text(),
    ])
    .headers(&[Header::Trace])
    .sending();

/// How long an answer is waited for; then the caller polls.
pub(super) const WAIT: Duration = Duration::from_secs(30);
/// The skill of a text that asks for none. No agent need have it.
const CHAT_SKILL: &str = "chat";
/// How the idempotency key of a correlation id begins. Callers cannot choose such a key, so it is no other send's.
const CORRELATION_KEY: &str = "switchboard:correlation:";

/// A text to an agent.
#[derive(Default)]
pub(super) struct Question {
    pub(super) agent: String,
    pub(super) message: String,
    pub(super) skill: Option<String>,
    pub(super) context: Option<String>,
    pub(super) task: Option<String>,
    pub(super) dispatcher: Option<String>,
    pub(super) project: Option<String>,
    pub(super) wait: Option<Duration>,
}

/// The idempotency key of a correlation id.
pub(super) fn correlation_key(correlation: &str) -> String {
    format!("{CORRELATION_KEY}{correlation}")
}

/// Sends a text to an agent; with it comes the correlation id.
pub(super) async fn ask(request: &ApiRequest<'_>, question: Question) -> Result<(Dispatched, String), ApiError> {
    if question.agent == ALL {
        let wrong = format!("is {ALL:?}, which is no agent");
        return Err(ApiError::invalid("agent", wrong, "the name of one; POST /api/dispatch asks several"));
    }
    let trace = trace_headers::read(&request.exchange.parts.headers).map_err(ApiError::Protocol)?;
    let correlation = trace.as_ref().and_then(|trace| trace.correlation_id.clone());
    let hints = DispatchHints {
        force: question.skill.is_none(),
        skill: Some(question.skill.unwrap_or_else(|| CHAT_SKILL.to_owned())),
        targets: vec![question.agent.clone()],
        fanout: None,
        dispatcher_agent: question.dispatcher,
        project_slug: question.project,
    };
    let ordered = Dispatch {
        parts: vec![Part::text(question.message)],
        hints,
        context: question.context.map(Into::into),
        task: question.task.map(Into::into),
        agent: Some(AgentName::from(question.agent)),
        metadata: None,
        key: correlation.as_deref().map(correlation_key),
        request: None,
        trace,
        wait: question.wait,
    };
    let done = dispatch(request.hub, request.caller(), ordered).await?;
    let correlation = correlation.unwrap_or_else(|| done.task.to_string());
    Ok((done, correlation))
}

async fn chat(mut request: ApiRequest<'_>) -> Result<Response<Body>, ApiError> {
    let mut fields = request.fields().await?;
    let question = Question {
        agent: fields.text("agent", "the name of an agent"),
        message: fields.text("message", "the text"),
        skill: fields.optional_text("skill", "the id of a skill"),
        context: fields.optional_text("contextId", "the id of a conversation"),
        task: fields.optional_text("taskId", "the id of a task"),
        dispatcher: fields.optional_text("dispatcherAgent", "the name of an agent"),
        project: None,
        wait: (!fields.flag("returnImmediately")).then_some(WAIT),
    };
    let is_over = fields.flag("done");
    fields.finish()?;
    let returns_immediately = question.wait.is_none();
    let (done, correlation) = ask(&request, question).await?;
    if let DispatchResult::Stopped(task) = &done.result
        && has_failed(task.status.state)
    {
        let more = names(&done, &correlation, &state_text(task.status.state));
        let (status, message) = (StatusCode::BAD_GATEWAY, failure(task));
        return Err(ApiError::Conflict { status, code: "AGENT_ERROR", message, more });
    }
    let mut answer = told(&done, &correlation, returns_immediately);
    if let (true, Some(answer)) = (is_over, answer.as_object_mut()) {
        answer.remove("contextId");
        answer.remove("taskId");
    }
    Ok(request.answer(StatusCode::OK, &answer))
}

/// What has come of it: the answer, the question, or that it is pending.
pub(super) fn told(done: &Dispatched, correlation: &str, returns_immediately: bool) -> Value {
    match &done.result {
        DispatchResult::Stopped(task) => {
            let mut answer = names(done, correlation, &state_text(task.status.state));
            answer["response"] = text(task).into();
            answer
        }
        DispatchResult::Replied(message) => {
            let mut answer = names(done, correlation, "completed");
            answer["response"] = text_of(message).into();
            // There is no task that could be read.
            if let Some(answer) = answer.as_object_mut() {
                answer.remove("taskId");
            }
            answer
        }
        DispatchResult::Pending(state) => {
            let state = if returns_immediately { TaskState::Submitted } else { *state };
            let mut answer = names(done, correlation, &state_text(state));
            answer["pending"] = true.into();
            answer["response"] = Value::Null;
            answer["pollUrl"] = poll_url(done).into();
            answer
        }
    }
}

fn names(done: &Dispatched, correlation: &str, state: &str) -> Value {
    json!({
        "agent": done.agent.as_ref().map(AgentName::as_str),
        "contextId": done.context,
        "taskId": done.task,
        "taskState": state,
        "correlationId": correlation,
    })
}

fn poll_url(done: &Dispatched) -> String {
    format!("/api/a2a/task/{}", done.task)
}

async fn delegate(mut request: ApiRequest<'_>) -> Result<Response<Body>, ApiError> {
    let mut fields = request.fields().await?;
    let question = Question {
        agent: fields.text("agent", "the name of an agent"),
        skill: Some(fields.text("skill", "the id of a skill")),
        message: fields.text("message", "the text"),
        dispatcher: fields.optional_text("dispatcherAgent", "the name of an agent"),
        project: fields.optional_text("projectSlug", "a text"),
        ..Question::default()
    };
    fields.finish()?;
    let agent = question.agent.clone();
    let (done, correlation) = ask(&request, question).await?;
    let answer = json!({
        "correlationId": correlation,
        "message": format!("agent {agent} has it: poll for the result"),
        "taskId": done.task,
        "pollUrl": poll_url(&done),
    });
    Ok(request.answer(StatusCode::ACCEPTED, &answer))
}
