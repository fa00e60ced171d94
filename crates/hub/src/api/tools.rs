//! `GET /api/tools` and `POST /api/tools/{tool}`: agents as tools for models, one for each agent.

use std::sync::Arc;

use http::{Method, Response, StatusCode};
use serde_json::{Value, json};
use switchboard_a2a::TaskState;
use switchboard_engine::{Hosted, Skill};
use switchboard_server::Body;

use super::chat::{Question, WAIT, ask, told};
use super::error::ApiError;
use super::request::ApiRequest;
use super::route::{Header, Parameter, Route};
use crate::dispatch::DispatchResult;
use crate::feed::segment;
use crate::reply::{failure, has_failed};

pub(super) const LIST: Route = Route::get("/api/tools", "List the agents as tools", |request| Box::pin(list(request)))
    .parameters(&[
        Parameter::new("pageSize", "Tools on a page, 1 to 100; 50 by default.").integer(),
        Parameter::new("after", "The name under next of the page before."),
    ]);
pub(super) const CALL: Route =
    Route::new(Method::POST, "/api/tools/{tool}", "Call an agent as a tool", |request| Box::pin(call(request)))
        .tool()
        .body(&[
            Parameter::new("message", "The text; required.").text(),
            Parameter::new("skill", "The id of one of its skills.").text(),
            Parameter::new("contextId", "The conversation to go on with.").text(),
            Parameter::new("taskId", "The task to go on with.").text(),
        ])
        .headers(&[Header::Trace])
        .sending()
        .refusals(&[(502, "AGENT_ERROR")]);

/// How the names of tools begin.
const PREFIX: &str = "a2a_";
/// What a model gets of an answer, in characters.
const TEXT: usize = 8_000;

async fn list(request: ApiRequest<'_>) -> Result<Response<Body>, ApiError> {
    let size = request.number("pageSize", 50, 1..=100)?;
    let after = request.value("after").unwrap_or_default();
    let mut tools: Vec<(String, Value)> =
        agents(&request).iter().map(|hosted| (tool_name(hosted), schema(hosted))).collect();
    tools.retain(|(name, _)| name.as_str() > after);
    let next = (tools.len() > size).then(|| tools.get(size - 1).map(|(name, _)| name.clone())).flatten();
    tools.truncate(size);
    let items: Vec<Value> = tools.into_iter().map(|(_, tool)| tool).collect();
    let mut answer = json!({ "items": items });
    if let Some(next) = next {
        answer["next"] = next.into();
    }
    Ok(request.answer(StatusCode::OK, &answer))
}

/// Those that the caller may call, in the order of their tools' names.
fn agents(request: &ApiRequest<'_>) -> Vec<Arc<Hosted>> {
    let scope = &request.caller().scopes.agents;
    let mut agents = request.hub.engine.directory().agents();
    agents.retain(|hosted| !hosted.name.is_own() && scope.allows(&hosted.name));
    agents.sort_by_cached_key(|hosted| tool_name(hosted));
    agents
}

fn tool_name(hosted: &Hosted) -> String {
    format!("{PREFIX}{}", segment(hosted.name.as_str()))
}

fn schema(hosted: &Hosted) -> Value {
    let served = hosted.served();
    let skills: Vec<&Skill> = served.manifest.skills.iter().filter(|skill| !skill.private).collect();
    let mut description = served.manifest.description.clone();
    for skill in &skills {
        description.push_str(&format!("\n- {}: {}", skill.id, skill.description));
    }
    let text = |about: &str| json!({ "type": "string", "description": about });
    let mut properties = json!({
        "message": text("What the agent is asked, in words"),
        "contextId": text("The conversation to go on with, as an earlier answer names it"),
        "taskId": text("The task to go on with, as an earlier answer names it"),
    });
    if !skills.is_empty() {
        let ids: Vec<&str> = skills.iter().map(|skill| skill.id.as_str()).collect();
        properties["skill"] = json!({ "type": "string", "enum": ids, "description": "The skill that is wanted" });
    }
    let input = json!({
        "type": "object",
        "properties": properties,
        "required": ["message"],
        "additionalProperties": false,
    });
    json!({ "name": tool_name(hosted), "description": description, "inputSchema": input })
}

async fn call(mut request: ApiRequest<'_>) -> Result<Response<Body>, ApiError> {
    let mut fields = request.fields().await?;
    let mut question = Question {
        message: fields.text("message", "the text"),
        skill: fields.optional_text("skill", "the id of a skill"),
        context: fields.optional_text("contextId", "the id of a conversation"),
        task: fields.optional_text("taskId", "the id of a task"),
        wait: Some(WAIT),
        ..Question::default()
    };
    fields.finish()?;
    let name = request.variable("tool");
    let agent = agents(&request).into_iter().find(|hosted| tool_name(hosted) == name);
    let missing = || ApiError::NotFound(format!("there is no tool {name:?}: GET /api/tools lists them"));
    question.agent = agent.ok_or_else(missing)?.name.to_string();
    let (done, correlation) = ask(&request, question).await?;
    if let DispatchResult::Stopped(task) = &done.result
        && has_failed(task.status.state)
    {
        // What was refused or canceled would be so again.
        let more = json!({ "retryable": task.status.state == TaskState::Failed });
        let (status, message) = (StatusCode::BAD_GATEWAY, failure(task));
        return Err(ApiError::Conflict { status, code: "AGENT_ERROR", message, more });
    }
    let mut answer = told(&done, &correlation, false);
    if let Some(text) = answer["response"].as_str()
        && let Some((end, _)) = text.char_indices().nth(TEXT)
    {
        answer["response"] = text[..end].into();
        answer["truncated"] = true.into();
    }
    Ok(request.answer(StatusCode::OK, &answer))
}
