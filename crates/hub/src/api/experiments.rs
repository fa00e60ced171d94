//! `/api/experiments`: two agents compared at a skill until one has won.

use http::{Method, Response, StatusCode};
use serde_json::{Value, json};
use switchboard_engine::{AgentName, CallerRole};
use switchboard_server::Body;

use super::error::ApiError;
use super::fields::Fields;
use super::request::ApiRequest;
use super::route::{Parameter, Route};
use crate::experiments::{Defined, Definition, ExperimentError};
use crate::task_rows::CallerNames;

pub(super) const LIST: Route =
    Route::get("/api/experiments", "List experiments, by skill", |request| Box::pin(list(request)))
        .role(CallerRole::Admin)
        .parameters(&[
            Parameter::new("pageSize", "Experiments on a page, 1 to 100; 50 by default.").integer(),
            Parameter::new("after", "The skill under next of the page before."),
        ]);
pub(super) const ADD: Route =
    Route::new(Method::POST, "/api/experiments", "Compare two agents at a skill", |request| Box::pin(add(request)))
        .role(CallerRole::Admin)
        .body(&[
            Parameter::new("skill", "The skill, which both agents have; required.").text(),
            Parameter::new("control", "The agent that has served it so far; required.").text(),
            Parameter::new("challenger", "The agent that is tried; required.").text(),
            Parameter::new("n", "Tasks of each that end before one wins, 1 to 1000000; 50 by default.").integer(),
        ])
        .refusals(&[(409, "EXISTS")]);
pub(super) const REMOVE: Route =
    Route::new(Method::DELETE, "/api/experiments/{skill}", "End an experiment and forget its winner", |request| {
        Box::pin(remove(request))
    })
    .role(CallerRole::Admin)
    .body(&[]);

/// The most tasks of each agent that an experiment may wait for.
const MOST: usize = 1_000_000;
/// The longest skill that an experiment may have: it names a row, and is in the projector's state.
const SKILL_BYTES: usize = 256;

async fn list(request: ApiRequest<'_>) -> Result<Response<Body>, ApiError> {
    let page_size = request.number("pageSize", 50, 1..=100)?;
    let after = request.value("after").unwrap_or_default();
    let names = CallerNames::read(request.hub).await?;
    let all = request.hub.experiments.all();
    let mut visible = all.iter().filter(|(defined, _)| defined.definition.skill.as_str() > after).peekable();
    let mut items = Vec::new();
    let mut last = None;
    for (defined, state) in visible.by_ref().take(page_size) {
        items.push(shown(defined, state, &names));
        last = Some(defined.definition.skill.as_str());
    }
    let mut answer = json!({ "items": items });
    if let Some(last) = last.filter(|_| visible.peek().is_some()) {
        answer["next"] = last.into();
    }
    Ok(request.answer(StatusCode::OK, &answer))
}

async fn add(mut request: ApiRequest<'_>) -> Result<Response<Body>, ApiError> {
    let mut fields = request.fields().await?;
    let skill = fields.text("skill", "the id of a skill that both agents have");
    if skill.len() > SKILL_BYTES {
        fields.problem("skill", format!("has {} bytes", skill.len()), "at most 256 bytes");
    }
    let control = fields.text("control", "the name of an agent");
    let challenger = fields.text("challenger", "the name of another agent");
    let n = fields.number("n", 50, 1..=MOST) as u64;
    if control == challenger && !control.is_empty() {
        fields.problem("challenger", "is the agent under control too", "the name of another agent");
    }
    check_arm(&request, &mut fields, "control", &control, &skill);
    check_arm(&request, &mut fields, "challenger", &challenger, &skill);
    fields.finish()?;
    let hub = request.hub;
    let definition = Definition { skill, control, challenger, n };
    let added = hub.experiments.add(&hub.parts, &hub.registry.signals, &request.actor(), definition).await;
    let defined = added.map_err(refused)?;
    let names = CallerNames::read(hub).await?;
    let found = hub.experiments.all().into_iter().find(|(other, _)| *other == defined);
    let state = found.map_or_else(|| json!({ "state": "running" }), |(_, state)| state);
    Ok(request.answer(StatusCode::CREATED, &shown(&defined, &state, &names)))
}

async fn remove(mut request: ApiRequest<'_>) -> Result<Response<Body>, ApiError> {
    request.no_members().await?;
    let hub = request.hub;
    let skill = request.variable("skill");
    let removed = hub.experiments.remove(&hub.parts, &hub.registry.signals, &request.actor(), skill).await;
    removed.map_err(refused)?;
    Ok(request.empty())
}

/// An agent that is there and has the skill.
fn check_arm(request: &ApiRequest<'_>, fields: &mut Fields, member: &str, name: &str, skill: &str) {
    if name.is_empty() {
        return;
    }
    let agent = AgentName::from(name);
    let shown: String = name.chars().take(80).collect();
    let agents = request.hub.engine.directory().agents();
    let hosted = agents.into_iter().find(|hosted| hosted.name == agent && !agent.is_own());
    match hosted {
        None => fields.problem(member, format!("{shown:?} is no agent"), "one of GET /api/agents"),
        Some(hosted) if !skill.is_empty() && !hosted.served().has_skill(skill) => {
            let shown_skill: String = skill.chars().take(80).collect();
            fields.problem(member, format!("{shown} has no skill {shown_skill:?}"), "an agent that has the skill");
        }
        Some(_) => {}
    }
}

fn shown(defined: &Defined, state: &Value, names: &CallerNames) -> Value {
    let mut shown = json!(defined.definition);
    shown["at"] = json!(defined.at);
    names.put(&mut shown, "owner", &defined.owner);
    if let (Some(shown), Some(state)) = (shown.as_object_mut(), state.as_object()) {
        shown.extend(state.clone());
    }
    shown
}

fn refused(error: ExperimentError) -> ApiError {
    let message = error.to_string();
    match error {
        ExperimentError::Exists(_) => {
            ApiError::Conflict { status: StatusCode::CONFLICT, code: "EXISTS", message, more: json!({}) }
        }
        ExperimentError::TooMany => ApiError::invalid("skill", message, "delete an experiment first"),
        ExperimentError::NotFound(_) => ApiError::NotFound(message),
        ExperimentError::Store(error) => ApiError::Store(error),
    }
}
