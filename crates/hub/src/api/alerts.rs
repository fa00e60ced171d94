//! `GET /api/alerts`: what fires, and what has stopped firing within a day.

use http::{Response, StatusCode};
use serde_json::{Value, json};
use switchboard_engine::{AgentName, AgentScope, CallerRole};
use switchboard_server::Body;

use super::error::ApiError;
use super::request::ApiRequest;
use super::route::Route;
use crate::alerts::AlertState;
use crate::feed::View;
use crate::hub::HubState;

pub(super) const ROUTE: Route = Route::get("/api/alerts", "Alerts that fire, or did within a day", |request| {
    Box::pin(async move { answer(&request) })
})
.role(CallerRole::Viewer);

fn answer(request: &ApiRequest<'_>) -> Result<Response<Body>, ApiError> {
    let view = View::of(request.caller());
    let items = shown(request.hub, &view, |state| state.firing || state.resolved_at.is_some());
    Ok(request.answer(StatusCode::OK, &json!({ "items": items })))
}

/// The alerts that a caller may see, of those that are wanted.
pub(super) fn shown(hub: &HubState, view: &View, wanted: impl Fn(&AlertState) -> bool) -> Vec<Value> {
    let is_visible = |state: &AlertState| match &state.agent {
        Some(agent) => view.sees_agent(&AgentName::from(agent.as_str())),
        None => view.caller().scopes.agents == AgentScope::All,
    };
    let states = hub.alerts.read();
    let found = states.values().filter(|state| is_visible(state) && wanted(state));
    let item = |state: &AlertState| {
        json!({
            "alert": state.alert,
            "agent": state.agent,
            "subject": state.subject,
            "state": if state.firing { "firing" } else { "resolved" },
            "firedAt": state.fired_at,
            "resolvedAt": state.resolved_at,
            "detail": state.detail,
        })
    };
    found.map(item).collect()
}
