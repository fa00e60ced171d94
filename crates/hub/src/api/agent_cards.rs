//! Cards of remote agents: looks at one now, accepts one that is held, and tries an address before it is registered.

use http::{Method, Response, StatusCode};
use serde_json::{Map, Value, json};
use switchboard_engine::CallerRole;
use switchboard_server::Body;

use super::agent_registrations::refused;
use super::agents::shown;
use super::error::ApiError;
use super::request::ApiRequest;
use super::route::{Parameter, Route};
use crate::audit::Act;

pub(super) const REFRESH: Route =
    Route::new(Method::POST, "/api/agents/{name}:refresh", "Fetch an agent's card now", |request| {
        Box::pin(refresh(request))
    })
    .role(CallerRole::Operator)
    .body(&[]);
pub(super) const ACCEPT: Route = Route::new(
    Method::POST,
    "/api/agents/{name}:accept",
    "Accept the card that is held, or less review as it asks",
    |request| Box::pin(accept(request)),
)
.role(CallerRole::Admin)
.body(&[Parameter::new("etag", "Of the held card, as the roster shows it; required.").text()])
.refusals(&[(412, "VERSION")]);
pub(super) const PROBE: Route =
    Route::new(Method::POST, "/api/a2a/probe", "Look for an agent at an address", |request| Box::pin(probe(request)))
        .role(CallerRole::Admin)
        .enveloped()
        .body(&[
            Parameter::new("url", "Its address; required.").text(),
            Parameter::new("headers", "Headers to send.").object(),
            Parameter::new("…", "Credentials, as agents.yaml names them."),
        ]);

async fn refresh(mut request: ApiRequest<'_>) -> Result<Response<Body>, ApiError> {
    request.no_members().await?;
    let name = request.variable("name").to_owned();
    shown(&request, &name)?;
    let before = card(&request, &name);
    request.hub.registry.refresh(&name).await;
    let after = card(&request, &name);
    let act = Act { name: "agents.refresh", subject: &name, agent: Some(&name), task: None, before, after };
    request.audit(act).await;
    let answer = shown(&request, &name)?;
    Ok(request.answer(StatusCode::OK, &answer))
}

/// Which card is known of an agent, for the audit.
fn card(request: &ApiRequest<'_>, name: &str) -> Value {
    let roster = request.hub.registry.roster();
    let remote = roster.entry(name).and_then(|entry| entry.remote.as_ref());
    let etag = remote.and_then(|remote| remote.observed.lock().card.as_ref().map(|known| known.etag.clone()));
    json!({ "etag": etag })
}

async fn accept(mut request: ApiRequest<'_>) -> Result<Response<Body>, ApiError> {
    let mut fields = request.fields().await?;
    let etag = fields.text("etag", "the etag of the held card, as GET /api/agents/{name} shows it");
    fields.finish()?;
    let name = request.variable("name").to_owned();
    shown(&request, &name)?;
    if !request.hub.registry.accept(&request.actor(), &name, &etag).await {
        let message = format!("no card of agent {name} with that etag is held: read the agent again");
        let (code, status) = ("VERSION", StatusCode::PRECONDITION_FAILED);
        let more = json!({ "version": held(&request, &name) });
        return Err(ApiError::Conflict { status, code, message, more });
    }
    let answer = shown(&request, &name)?;
    Ok(request.answer(StatusCode::OK, &answer))
}

/// The etag of the card of an agent that is held now; nothing if none is.
fn held(request: &ApiRequest<'_>, name: &str) -> Option<String> {
    let roster = request.hub.registry.roster();
    let remote = roster.entry(name)?.remote.as_ref()?;
    let observed = remote.observed.lock();
    observed.held_etag()
}

async fn probe(mut request: ApiRequest<'_>) -> Result<Response<Body>, ApiError> {
    let mut item: Map<String, Value> = request.object().await?;
    item.entry("name").or_insert_with(|| "probed".into());
    let agent = request.hub.registry.read_registration(&Value::Object(item)).map_err(refused)?;
    let answer = match request.hub.registry.look_at(&agent).await {
        Ok(found) => {
            let card = &found.card;
            let skills: Vec<Value> = card
                .skills
                .iter()
                .map(|skill| json!({ "id": skill.id, "name": skill.name, "description": skill.description }))
                .collect();
            let mut versions: Vec<&str> =
                card.supported_interfaces.iter().map(|interface| interface.protocol_version.as_str()).collect();
            versions.dedup();
            json!({
                "reachable": true, "cardUrl": found.url, "name": card.name, "description": card.description,
                "skills": skills, "versions": versions, "problems": [],
            })
        }
        Err(problem) => json!({ "reachable": false, "problems": [problem] }),
    };
    let (url, after) = (agent.url.as_str(), json!({ "reachable": answer["reachable"] }));
    let act = Act { name: "agents.probe", subject: url, agent: None, task: None, before: Value::Null, after };
    request.audit(act).await;
    Ok(request.answer(StatusCode::OK, &answer))
}
