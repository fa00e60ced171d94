//! `GET /api/health`: how agents do, by agent, skill or caller.

use http::{Response, StatusCode};
use serde_json::{Value, json};
use switchboard_engine::store::hub::HealthBy;
use switchboard_engine::{AgentName, CallerRole};
use switchboard_server::Body;

use super::error::ApiError;
use super::request::ApiRequest;
use super::route::{Parameter, Route};
use crate::feed::View;
use crate::health::{Sum, Window};
use crate::hub::HubState;

pub(super) const ROUTE: Route =
    Route::get("/api/health", "How agents do: successes, durations, cost", |request| Box::pin(answer(request)))
        .parameters(&[
            Parameter::new("agent", "Only this agent."),
            Parameter::new("skill", "Only this skill."),
            Parameter::new("caller", "Only this caller; for keys with a role."),
            Parameter::new("window", "`1h` or `24h`, which it is if absent.").words(&["1h", "24h"]),
        ])
        .refusals(&[(403, "FORBIDDEN")]);

async fn answer(request: ApiRequest<'_>) -> Result<Response<Body>, ApiError> {
    let window = request.word("window", &[("1h", Window::Hour), ("24h", Window::Day)])?.unwrap_or(Window::Day);
    let view = View::of(request.caller());
    let (skill, caller) = (request.value("skill"), request.value("caller"));
    if let (Some(_), Some(given)) = (skill, caller) {
        return Err(ApiError::invalid("caller", format!("is {given:?}"), "leave it out beside skill"));
    }
    // Without a role a key sees its own row.
    let own = view.caller().id.to_string();
    let (by, name) = match (skill, caller) {
        _ if !view.has_role() && (skill.is_some() || caller.is_some_and(|caller| caller != own)) => {
            return Err(ApiError::Forbidden("a key without a role sees what it has caused itself".to_owned()));
        }
        _ if !view.has_role() => (HealthBy::Caller, Some(own.as_str())),
        (Some(skill), _) => (HealthBy::Skill, Some(skill)),
        (None, Some(caller)) => (HealthBy::Caller, Some(caller)),
        (None, None) => (HealthBy::All, None),
    };
    let now = request.hub.parts.clock.now();
    let sums = request.hub.health.read().window(now, window, by);
    let agent = request.agent();
    let (mut agents, mut totals) = (Vec::new(), Sum::default());
    for ((found, of), sum) in sums {
        let is_wanted =
            agent.as_ref().is_none_or(|agent| agent.as_str() == found) && name.is_none_or(|name| name == of);
        if is_wanted && view.sees_agent(&AgentName::from(found.as_str())) {
            totals.merge(&sum);
            agents.push(entry(request.hub, &found, by, &of, &sum, request.caller().scopes.role));
        }
    }
    Ok(request.answer(StatusCode::OK, &json!({ "agents": agents, "totals": figures(&totals) })))
}

/// The figures of an agent, or of one of its skills or callers, with what has failed of it for those who see the work of
/// others. What of it failed last and which skills never succeed is not known by caller.
pub(super) fn entry(hub: &HubState, agent: &str, by: HealthBy, name: &str, sum: &Sum, role: CallerRole) -> Value {
    let mut entry = figures(sum);
    entry["agent"] = agent.into();
    // Its own row, whole; of what the agent has done for others a key without a role hears nothing.
    if role < CallerRole::Viewer && by != HealthBy::Caller {
        return entry;
    }
    let now = hub.parts.clock.now();
    let sums = hub.health.read();
    let of_hour = sums.window(now, Window::Hour, by).remove(&(agent.to_owned(), name.to_owned()));
    entry["failureRate1h"] = json!(of_hour.unwrap_or_default().failure_rate());
    if by == HealthBy::Caller {
        return entry;
    }
    let is_wanted = |skill: &str| by == HealthBy::All || skill == name;
    let skills = sums.window(now, Window::Day, HealthBy::Skill);
    let orphaned = skills
        .iter()
        .filter(|((of, skill), sum)| of == agent && skill != "-" && sum.decided() > 0 && sum.successes == 0);
    entry["orphanedSkills"] = orphaned.map(|((_, skill), _)| skill.as_str()).filter(|skill| is_wanted(skill)).collect();
    let failures = hub.failures.read();
    let failures = failures.get(agent).into_iter().flatten();
    let recent: Vec<_> = failures.filter(|failure| is_wanted(failure.skill.as_deref().unwrap_or("-"))).collect();
    entry["recentFailures"] = json!(recent);
    entry
}

pub(super) fn figures(sum: &Sum) -> Value {
    json!({
        "outcomes": sum.outcomes,
        "successes": sum.successes,
        "canceled": sum.canceled,
        "successRate": sum.success_rate(),
        "p50Ms": sum.durations.quantile(0.5),
        "p95Ms": sum.durations.quantile(0.95),
        "inputTokens": sum.input_tokens,
        "outputTokens": sum.output_tokens,
        "costUsd": sum.cost_usd(),
        "estimated": sum.estimated,
        "costPerSuccess": sum.cost_per_success(),
    })
}
