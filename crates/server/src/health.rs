//! Health checks (liveness, readiness) and metrics, for operators and their machines.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use http::header::RETRY_AFTER;
use http::{HeaderValue, Method, Response, StatusCode};
use parking_lot::Mutex;
use switchboard_engine::{AgentName, CallerRole, Engine, Error};
use switchboard_webhooks::Webhooks;

use crate::edge::json_response;
use crate::front::{Access, Exchange, Front, WrongMethod};
use crate::metric_definitions as metric;
use crate::{Body, RenderMetrics, ResponseBudget, State};

#[derive(Clone, Copy)]
enum HealthCheck {
    /// Whether the process listens.
    Alive,
    /// Whether new work would be accepted.
    Ready,
    Metrics,
}

/// The paths; the unabbreviated ones are those of other servers.
fn check_at(path: &str) -> Option<HealthCheck> {
    match path {
        "/healthz" | "/health" => Some(HealthCheck::Alive),
        "/readyz" | "/ready" => Some(HealthCheck::Ready),
        "/metrics" => Some(HealthCheck::Metrics),
        _ => None,
    }
}

/// Whether a machine asks at this path every few seconds.
pub(crate) fn is_probe(path: &str) -> bool {
    check_at(path).is_some()
}

pub(crate) struct HealthFront {
    engine: Engine,
    webhooks: Option<Webhooks>,
    responses: Arc<ResponseBudget>,
    /// Absent if the server was started without metrics.
    render: Option<RenderMetrics>,
    /// Agents that the metrics have told to be up or down.
    told: Mutex<BTreeSet<AgentName>>,
}

impl HealthFront {
    pub(crate) fn new(state: &State) -> Self {
        Self {
            engine: state.engine.clone(),
            webhooks: state.outbox.clone(),
            responses: Arc::clone(&state.responses),
            render: state.options.metrics.clone(),
            told: Mutex::default(),
        }
    }
}

impl Front for HealthFront {
    fn name(&self) -> &'static str {
        "health"
    }

    fn find(&self, path: &str, method: &Method) -> Option<Result<Access, WrongMethod>> {
        let access = match check_at(path)? {
            HealthCheck::Alive | HealthCheck::Ready => Access::PUBLIC,
            HealthCheck::Metrics => Access::role(CallerRole::Admin),
        };
        Some(if *method == Method::GET { Ok(access) } else { Err(WrongMethod("GET, HEAD")) })
    }

    fn answer<'a>(&'a self, exchange: &'a mut Exchange) -> BoxFuture<'a, Response<Body>> {
        Box::pin(async move {
            let path = exchange.parts.uri.path();
            match check_at(path) {
                Some(HealthCheck::Alive) => json_response::json(StatusCode::OK, &serde_json::json!({ "status": "ok" })),
                Some(HealthCheck::Ready) => match self.engine.ready() {
                    Ok(()) => json_response::json(StatusCode::OK, &serde_json::json!({ "status": "ready" })),
                    Err(error) => not_ready(&error),
                },
                Some(HealthCheck::Metrics) => self.metrics().await,
                None => json_response::not_found(path),
            }
        })
    }
}

impl HealthFront {
    async fn metrics(&self) -> Response<Body> {
        let Some(RenderMetrics(render)) = &self.render else {
            return json_response::error(StatusCode::NOT_FOUND, "this server was started without metrics");
        };
        self.engine.measure().await;
        if let Some(webhooks) = &self.webhooks {
            webhooks.measure().await;
        }
        metrics::gauge!(metric::RESPONSE_BYTES).set(self.responses.bytes() as f64);
        metrics::gauge!(metric::WAITING_RESPONSES).set(self.responses.waiting() as f64);
        self.measure_agents();
        json_response::body(StatusCode::OK, "text/plain; version=0.0.4; charset=utf-8", without_gone(&render()))
    }

    /// Tells which agents are up. One that is gone is neither: a recorder keeps its series, with no number.
    fn measure_agents(&self) {
        let directory = self.engine.directory();
        let set = |name: &AgentName, up: f64| metrics::gauge!(metric::AGENT_UP, "agent" => name.to_string()).set(up);
        let mut now = BTreeSet::new();
        for hosted in directory.agents() {
            set(&hosted.name, if directory.is_up(&hosted.name) { 1.0 } else { 0.0 });
            now.insert(hosted.name.clone());
        }
        let mut told = self.told.lock();
        told.difference(&now).for_each(|gone| set(gone, f64::NAN));
        *told = now;
    }
}

/// The metrics without agents that are gone: a series that ends is what monitors take as one.
fn without_gone(metrics: &str) -> String {
    let is_gone = |line: &str| line.starts_with(metric::AGENT_UP) && line.trim_end().ends_with(" NaN");
    metrics.split_inclusive('\n').filter(|line| !is_gone(line)).collect()
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
