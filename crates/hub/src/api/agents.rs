//! `GET /api/agents`: the roster, as far as the caller may call its agents. Addresses and errors of remote agents are for
//! administrators.

use std::collections::BTreeMap;

use http::{Method, Response, StatusCode};
use serde_json::{Value, json};
use switchboard_engine::store::hub::HealthBy;
use switchboard_engine::{AgentName, Caller, CallerRole};
use switchboard_fleet::config::agents::Entry;
use switchboard_server::Body;

use super::error::ApiError;
use super::request::ApiRequest;
use super::route::{Parameter, Route};
use crate::health::{Sum, Window};
use crate::hub::HubState;
use crate::registry::{EntrySource, Roster, RosterEntry, SkillSource, reconcile};

pub(super) const LIST: Route = Route::get("/api/agents", "List the agents", |request| Box::pin(list(request)))
    .parameters(&[
        Parameter::new("pageSize", "Agents on a page, 1 to 100; 50 by default.").integer(),
        Parameter::new("after", "The name under next of the page before."),
    ]);
pub(super) const SHOW: Route = Route::get("/api/agents/{name}", "Show an agent", |request| Box::pin(show(request)));
pub(super) const RUNTIME: Route =
    Route::new(Method::GET, "/api/agents/runtime", "List agents and skills", |request| Box::pin(runtime(request)))
        .enveloped();
pub(super) const HEALTH: Route =
    Route::new(Method::GET, "/api/agent-health", "List the last probe of each agent elsewhere", |request| {
        Box::pin(health(request))
    })
    .enveloped();

async fn list(request: ApiRequest<'_>) -> Result<Response<Body>, ApiError> {
    let page_size = request.number("pageSize", 50, 1..=100)?;
    let after = request.value("after");
    let roster = request.hub.registry.roster();
    let visible = roster.entries.iter().filter(|entry| may_call(request.caller(), entry));
    // By name, so that a page goes on where the last one ended though its last agent is gone.
    let mut page: Vec<_> = visible.filter(|entry| after.is_none_or(|after| entry.name.as_str() > after)).collect();
    page.sort_by(|one, other| one.name.cmp(&other.name));
    page.truncate(page_size + 1);
    let next =
        (page.len() > page_size).then(|| page.pop()).flatten().and(page.last().map(|last| last.name.to_string()));
    let health = day(request.hub);
    let items: Vec<Value> = page
        .into_iter()
        .map(|entry| {
            let shown = with_policy(view(entry, request.caller()), entry, request.hub);
            with_health(shown, entry, &roster, &health)
        })
        .collect();
    let problems: Vec<&str> = match is_admin(request.caller()) {
        true => roster.problems.iter().map(|problem| problem.text.as_str()).collect(),
        false => Vec::new(),
    };
    let roles = &request.hub.parts.config.hub.roles;
    // An agent that the caller may not call is not named to it here either.
    let is_callable = |name: &&str| request.caller().scopes.agents.allows(&AgentName::from(*name));
    let roles = json!({
        "helm": roles.helm.as_ref().map(|name| name.as_str()).filter(is_callable),
        "reviewer": roles.reviewer.as_ref().map(|name| name.as_str()).filter(is_callable),
    });
    let mut answer = json!({ "items": items, "problems": problems, "roles": roles });
    if let Some(next) = next {
        answer["next"] = next.into();
    }
    Ok(request.answer(StatusCode::OK, &answer))
}

async fn show(request: ApiRequest<'_>) -> Result<Response<Body>, ApiError> {
    let answer = shown(&request, request.variable("name"))?;
    Ok(request.answer(StatusCode::OK, &answer))
}

/// An agent as it is shown; an agent that the caller may not call looks like none.
pub(super) fn shown(request: &ApiRequest<'_>, name: &str) -> Result<Value, ApiError> {
    let roster = request.hub.registry.roster();
    let entry = roster.entry(name).filter(|entry| may_call(request.caller(), entry));
    let missing = || ApiError::NotFound(format!("there is no agent {name:?}: GET /api/agents lists them"));
    let entry = entry.ok_or_else(missing)?;
    let shown = with_policy(view(entry, request.caller()), entry, request.hub);
    Ok(with_health(shown, entry, &roster, &day(request.hub)))
}

/// The outcomes of each agent in the last 24 hours.
fn day(hub: &HubState) -> BTreeMap<(String, String), Sum> {
    hub.health.read().window(hub.parts.clock.now(), Window::Day, HealthBy::All)
}

/// An agent as it is shown, with how far people take part in its skills.
fn with_policy(mut shown: Value, entry: &RosterEntry, hub: &HubState) -> Value {
    let policies = entry.policies(&hub.parts.config.hub.inbox);
    shown["policy"] = policies.map(|policies| policies.view()).unwrap_or_default();
    let lowered = entry.remote.as_ref().and_then(|remote| remote.lowered_policies(&hub.parts.config.hub.inbox));
    if let Some(lowered) = lowered {
        shown["held"]["policy"] = lowered.view();
    }
    shown
}

/// An agent as it is shown, with how it does and, where its address is shown, what is wrong with it.
fn with_health(
    mut shown: Value,
    entry: &RosterEntry,
    roster: &Roster,
    health: &BTreeMap<(String, String), Sum>,
) -> Value {
    let sum = health.get(&(entry.name.to_string(), String::new())).cloned().unwrap_or_default();
    shown["health"] = json!({
        "successRate": sum.success_rate(),
        "p95Ms": sum.durations.quantile(0.95),
        "costUsd24h": sum.cost_usd(),
    });
    if shown["problems"].is_array() {
        shown["problems"] = entry.problems(roster).into();
    }
    shown
}

async fn runtime(request: ApiRequest<'_>) -> Result<Response<Body>, ApiError> {
    let roster = request.hub.registry.roster();
    let visible = roster.entries.iter().filter(|entry| may_call(request.caller(), entry));
    let agents: Vec<Value> = visible
        .map(|entry| {
            let skills: Vec<String> = skills(entry).into_iter().map(|(id, ..)| id).collect();
            let mut agent = json!({ "name": entry.name.as_str(), "type": entry.kind(), "skills": skills });
            if let Some(remote) = &entry.remote {
                if remote.observed.lock().card.is_none() {
                    agent["pendingDiscovery"] = true.into();
                }
                if is_admin(request.caller()) {
                    agent["host"] = remote.definition.url.as_str().into();
                }
            }
            agent
        })
        .collect();
    Ok(request.answer(StatusCode::OK, &json!({ "agents": agents })))
}

async fn health(request: ApiRequest<'_>) -> Result<Response<Body>, ApiError> {
    let roster = request.hub.registry.roster();
    let visible = roster.entries.iter().filter(|entry| may_call(request.caller(), entry));
    let probes: Vec<Value> = visible
        .filter_map(|entry| {
            let remote = entry.remote.as_ref()?;
            let observed = remote.observed.lock();
            let last = observed.reachability.last.as_ref();
            let card = observed.card.as_ref().map(|known| &known.card);
            let mut probe = json!({
                "agentName": entry.name.as_str(),
                "reachable": last.is_some_and(|last| last.is_reached),
                "latencyMs": last.map(|last| last.latency.as_millis()),
                "lastProbedAt": last.map(|last| last.at.to_string()),
                "cardAvailable": last.map_or(card.is_some(), |last| last.error.is_none()),
                "streaming": card.and_then(|card| card.capabilities.streaming),
                "pushNotifications": card.and_then(|card| card.capabilities.push_notifications),
                "skillCount": reconcile(&remote.definition, card.map(|card| &**card)).len(),
            });
            if is_admin(request.caller()) {
                probe["url"] = remote.definition.url.as_str().into();
                probe["error"] = last.and_then(|last| last.error.clone()).into();
            }
            Some(probe)
        })
        .collect();
    Ok(request.answer(StatusCode::OK, &probes))
}

pub(super) fn view(entry: &RosterEntry, caller: &Caller) -> Value {
    let skills: Vec<Value> = skills(entry)
        .into_iter()
        .map(|(id, name, source)| json!({ "id": id, "name": name, "from": if source == SkillSource::Yaml { "yaml" } else { "card" } }))
        .collect();
    let (source, version) = match &entry.source {
        EntrySource::File => ("file", None),
        EntrySource::Registration { version, .. } => ("registration", Some(*version)),
    };
    let served = entry.hosted.as_ref().map(|hosted| hosted.served());
    let description = match (&served, &entry.definition) {
        (Some(served), _) => Some(served.manifest.description.clone()),
        (None, Entry::Remote(agent)) => agent.serving.description.clone(),
        (None, Entry::Hosted(agent)) => agent.description.clone(),
    };
    let mut shown = json!({
        "name": entry.name.as_str(),
        "kind": entry.kind(),
        "source": source,
        "shadowed": entry.shadows_registration,
        "version": version,
        "served": served.is_some(),
        "description": description,
        "skills": skills,
    });
    if is_admin(caller) {
        shown["problems"] = json!([]);
    }
    if let Some(remote) = &entry.remote {
        shown["subscribesTo"] = json!(remote.definition.serving.subscribes_to);
        let observed = remote.observed.lock();
        let last = observed.reachability.last.as_ref();
        shown["breaker"] = remote.breaker.state().name().into();
        shown["probe"] = json!({
            "up": !observed.reachability.is_down(),
            "at": last.map(|last| last.at.to_string()),
            "latencyMs": last.map(|last| last.latency.as_millis()),
        });
        if let Some(etag) = observed.held_etag() {
            shown["held"] = json!({ "etag": etag });
        }
        if is_admin(caller) {
            shown["url"] = remote.definition.url.as_str().into();
            let headers: Vec<String> = remote.definition.headers.iter().map(|(name, _)| name.to_string()).collect();
            shown["headers"] = headers.into();
            shown["probe"]["error"] = last.and_then(|last| last.error.clone()).into();
        }
    }
    shown
}

/// Id, name and source of each skill.
fn skills(entry: &RosterEntry) -> Vec<(String, String, SkillSource)> {
    if let Some(remote) = &entry.remote {
        let card = remote.observed.lock().card.as_ref().map(|known| known.card.clone());
        let skills = reconcile(&remote.definition, card.as_deref());
        return skills.into_iter().map(|(skill, source)| (skill.id, skill.name, source)).collect();
    }
    let Some(hosted) = &entry.hosted else { return Vec::new() };
    let served = hosted.served();
    let of = |skill: &switchboard_engine::Skill| (skill.id.clone(), skill.name.clone(), SkillSource::Yaml);
    served.manifest.skills.iter().filter(|skill| !skill.private).map(of).collect()
}

pub(super) fn may_call(caller: &Caller, entry: &RosterEntry) -> bool {
    caller.scopes.agents.allows(&entry.name)
}

fn is_admin(caller: &Caller) -> bool {
    caller.scopes.role >= CallerRole::Admin
}
