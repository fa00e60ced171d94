//! `GET /api/control-plane/state`: agents, health and readers of the log in one answer, in the form of earlier hubs.

use http::{Method, Response, StatusCode};
use serde_json::{Value, json};
use switchboard_engine::store::hub::HealthBy;
use switchboard_engine::{AgentName, CallerRole};
use switchboard_server::Body;

use super::agents;
use super::error::ApiError;
use super::health::entry;
use super::request::ApiRequest;
use super::route::Route;
use crate::feed::View;
use crate::health::Window;

pub(super) const ROUTE: Route =
    Route::new(Method::GET, "/api/control-plane/state", "Agents, health and readers of the log", |request| {
        Box::pin(async move { answer(&request) })
    })
    .role(CallerRole::Viewer)
    .enveloped();

fn answer(request: &ApiRequest<'_>) -> Result<Response<Body>, ApiError> {
    let (hub, caller) = (request.hub, request.caller());
    let view = View::of(caller);
    let now = hub.parts.clock.now();
    let roster = hub.registry.roster();
    let visible = roster.entries.iter().filter(|entry| agents::may_call(caller, entry));
    let agents: Vec<Value> = visible.map(|entry| agents::view(entry, caller)).collect();
    let sums = hub.health.read().window(now, Window::Day, HealthBy::All);
    let seen = sums.iter().filter(|((agent, _), _)| view.sees_agent(&AgentName::from(agent.as_str())));
    let health: Vec<Value> =
        seen.map(|((agent, _), sum)| entry(hub, agent, HealthBy::All, "", sum, caller.scopes.role)).collect();
    let consumers: Vec<Value> = hub
        .consumers
        .lags()
        .into_iter()
        .map(|(name, lag)| json!({ "name": name, "node": hub.engine.node_id(), "lagMs": lag.as_millis() as u64 }))
        .collect();
    let answer = json!({ "agents": agents, "health": health, "consumers": consumers, "collectedAt": now });
    Ok(request.answer(StatusCode::OK, &answer))
}
