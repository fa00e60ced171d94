//! Health checks (liveness, readiness) and metrics, for operators and their machines.

use http::header::RETRY_AFTER;
use http::{HeaderValue, Response, StatusCode};
use switchboard_engine::{CallerRole, Error};

use crate::edge::authenticate::check_role;
use crate::edge::json_response;
use crate::metric_definitions as metric;
use crate::{Body, CallerIdentity, RenderMetrics, State};

#[derive(Clone, Copy)]
pub(crate) enum HealthCheck {
    /// Whether the process listens.
    Alive,
    /// Whether new work would be accepted.
    Ready,
    Metrics,
}

/// The paths; the unabbreviated ones are those of other servers.
pub(crate) fn find(path: &str) -> Option<HealthCheck> {
    match path {
        "/healthz" | "/health" => Some(HealthCheck::Alive),
        "/readyz" | "/ready" => Some(HealthCheck::Ready),
        "/metrics" => Some(HealthCheck::Metrics),
        _ => None,
    }
}

/// Answers; the caller matters for metrics only.
pub(crate) async fn answer(state: &State, check: HealthCheck, identity: &CallerIdentity) -> Response<Body> {
    match check {
        HealthCheck::Alive => json_response::json(StatusCode::OK, &serde_json::json!({ "status": "ok" })),
        HealthCheck::Ready => match state.engine.ready() {
            Ok(()) => json_response::json(StatusCode::OK, &serde_json::json!({ "status": "ready" })),
            Err(error) => not_ready(&error),
        },
        HealthCheck::Metrics => match check_role(&identity.caller, CallerRole::Admin) {
            Ok(()) => metrics(state).await,
            Err(error) => json_response::refusal(&error),
        },
    }
}

fn not_ready(error: &Error) -> Response<Body> {
    let document = serde_json::json!({ "status": "not ready", "reason": error.to_string() });
    let mut response = json_response::json(StatusCode::SERVICE_UNAVAILABLE, &document);
    if let Error::Unavailable { retry_after_ms, .. } = error {
        let seconds = retry_after_ms.div_ceil(1_000).max(1);
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

async fn metrics(state: &State) -> Response<Body> {
    let Some(RenderMetrics(render)) = &state.options.metrics else {
        return json_response::error(StatusCode::NOT_FOUND, "this server was started without metrics");
    };
    state.engine.measure().await;
    if let Some(webhooks) = &state.outbox {
        webhooks.measure().await;
    }
    metrics::gauge!(metric::RESPONSE_BYTES).set(state.responses.bytes() as f64);
    metrics::gauge!(metric::WAITING_RESPONSES).set(state.responses.waiting() as f64);
    for hosted in state.engine.directory().agents() {
        metrics::gauge!(metric::AGENT_UP, "agent" => hosted.name.to_string()).set(1.0);
    }
    json_response::body(StatusCode::OK, "text/plain; version=0.0.4; charset=utf-8", render())
}
