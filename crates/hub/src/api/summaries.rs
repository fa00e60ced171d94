//! `GET /api/cost-summaries` and `/api/confidence-summaries`: what agents' work has cost in a day, and how well they know
//! whether it was good.

use std::collections::BTreeMap;

use http::{Response, StatusCode};
use serde_json::{Value, json};
use switchboard_engine::AgentName;
use switchboard_engine::store::hub::HealthBy;
use switchboard_server::Body;

use super::error::ApiError;
use super::request::ApiRequest;
use super::route::{Parameter, Route};
use crate::feed::View;
use crate::health::{Sum, Window};

const PARAMETERS: &[Parameter] = &[
    Parameter::new("agent", "Only this agent."),
    Parameter::new("skill", "Only this skill; for keys with a role."),
    Parameter::new("minSamples", "Only those with at least so many.").integer(),
];

pub(super) const COST: Route = Route::get(
    "/api/cost-summaries",
    "Cost of work by agent and skill: in all, and on average (avgTokensIn, avgTokensOut, avgWallMs, avgCostUsd)",
    |request| Box::pin(async move { cost(&request) }),
)
.enveloped()
.parameters(PARAMETERS)
.refusals(&[(403, "FORBIDDEN")]);

pub(super) const CONFIDENCE: Route =
    Route::get("/api/confidence-summaries", "How sure agents are, and how often they fail all the same", |request| {
        Box::pin(async move { confidence(&request) })
    })
    .enveloped()
    .parameters(PARAMETERS)
    .refusals(&[(403, "FORBIDDEN")]);

fn cost(request: &ApiRequest<'_>) -> Result<Response<Body>, ApiError> {
    let figures = |sum: &Sum| {
        let of_sample = |total: f64| (sum.costed > 0).then(|| total / sum.costed as f64);
        json!({
            // What earlier hubs call it, and their averages.
            "sampleCount": sum.costed,
            "avgTokensIn": of_sample(sum.input_tokens as f64),
            "avgTokensOut": of_sample(sum.output_tokens as f64),
            "avgWallMs": (sum.outcomes > 0).then(|| sum.average_ms()),
            "avgCostUsd": of_sample(sum.cost_usd()),
            "samples": sum.costed,
            "totalCostUsd": sum.cost_usd(),
            "costPerSuccess": sum.cost_per_success(),
            "inputTokens": sum.input_tokens,
            "outputTokens": sum.output_tokens,
            "estimated": sum.estimated,
            "successRate": sum.success_rate(),
        })
    };
    summaries(request, |sum| sum.costed, figures)
}

fn confidence(request: &ApiRequest<'_>) -> Result<Response<Body>, ApiError> {
    let figures = |sum: &Sum| {
        json!({
            "samples": sum.rated,
            "averageConfidence": sum.average_confidence(),
            "highConfFailures": sum.confident_failures,
            "successRate": sum.success_rate(),
        })
    };
    summaries(request, |sum| sum.rated, figures)
}

fn summaries(
    request: &ApiRequest<'_>,
    samples: impl Fn(&Sum) -> u64,
    figures: impl Fn(&Sum) -> Value,
) -> Result<Response<Body>, ApiError> {
    let least = request.number("minSamples", 1, 0..=u64::MAX)?;
    let view = View::of(request.caller());
    let by = if view.has_role() { HealthBy::Skill } else { HealthBy::Caller };
    let skill = request.value("skill");
    if skill.is_some() && !view.has_role() {
        return Err(ApiError::Forbidden("a key without a role sees what it has caused itself".to_owned()));
    }
    let sums: BTreeMap<(String, String), Sum> =
        request.hub.health.read().window(request.hub.parts.clock.now(), Window::Day, by);
    let agent = request.agent();
    let own = view.caller().id.as_str();
    let is_wanted = |of: &str, name: &str| {
        agent.as_ref().is_none_or(|agent| agent.as_str() == of)
            && skill.is_none_or(|skill| skill == name)
            && (view.has_role() || name == own)
            && view.sees_agent(&AgentName::from(of))
    };
    let found: Vec<Value> = sums
        .iter()
        .filter(|((of, name), sum)| is_wanted(of, name) && samples(sum) >= least)
        .map(|((of, name), sum)| {
            let mut entry = figures(sum);
            entry["agent"] = of.as_str().into();
            if view.has_role() {
                entry["skill"] = name.as_str().into();
            }
            entry
        })
        .collect();
    Ok(request.answer(StatusCode::OK, &found))
}
