//! `GET /api/series`: one figure of an agent over time, for a chart. It reads the stored sums, so it reaches back further than
//! the windows of `/api/health`.

use http::{Response, StatusCode};
use serde_json::{Value, json};
use switchboard_a2a::Timestamp;
use switchboard_engine::CallerRole;
use switchboard_engine::store::hub::{HealthBy, HealthSeries, HealthStep};
use switchboard_server::Body;

use super::error::ApiError;
use super::request::{ApiRequest, wrong};
use super::route::{Parameter, Route};
use crate::feed::View;
use crate::health::Sum;

pub(super) const ROUTE: Route =
    Route::get("/api/series", "A figure of an agent over time", |request| Box::pin(answer(request)))
        .role(CallerRole::Viewer)
        .parameters(&[
            Parameter::new(
                "metric",
                "`outcomes`, `successes`, `failures`, `canceled`, `successRate`, `p50Ms`, `p95Ms`, `inputTokens`, `outputTokens` or `costUsd`; required.",
            )
            .words(&[
                "outcomes",
                "successes",
                "failures",
                "canceled",
                "successRate",
                "p50Ms",
                "p95Ms",
                "inputTokens",
                "outputTokens",
                "costUsd",
            ]),
            Parameter::new("agent", "The agent; required."),
            Parameter::new("skill", "Only this skill."),
            Parameter::new("from", "Begin, such as `2026-01-02T03:04:05Z`; so that the last of 300 points is now if absent.").time(),
            Parameter::new("step", "`minute` or `hour`, which it is if absent.").words(&["minute", "hour"]),
        ])
        .refusals(&[(404, "NOT_FOUND")]);

/// Points of an answer.
const POINTS: i64 = 300;

/// A figure of a sum. Where nothing has ended a count is 0, and what is said of what has ended is nothing.
type Metric = fn(&Sum) -> Value;

const METRICS: &[(&str, Metric)] = &[
    ("outcomes", |sum| sum.outcomes.into()),
    ("successes", |sum| sum.successes.into()),
    ("failures", |sum| sum.failures().into()),
    ("canceled", |sum| sum.canceled.into()),
    ("successRate", |sum| sum.success_rate().into()),
    ("p50Ms", |sum| sum.durations.quantile(0.5).into()),
    ("p95Ms", |sum| sum.durations.quantile(0.95).into()),
    ("inputTokens", |sum| sum.input_tokens.into()),
    ("outputTokens", |sum| sum.output_tokens.into()),
    ("costUsd", |sum| sum.cost_usd().into()),
];

async fn answer(request: ApiRequest<'_>) -> Result<Response<Body>, ApiError> {
    let metric = request.word("metric", METRICS)?;
    let steps = [("minute", HealthStep::Minute), ("hour", HealthStep::Hour)];
    let step = request.word("step", &steps)?.unwrap_or(HealthStep::Hour);
    let length = match step {
        HealthStep::Minute => 60_000,
        HealthStep::Hour => 3_600_000,
    };
    let now = request.hub.parts.clock.now().0.div_euclid(length);
    let from = match request.value("from") {
        None => now - (POINTS - 1),
        Some(text) => {
            let time = Timestamp::parse(text).filter(|time| time.0.div_euclid(length) <= now);
            time.ok_or_else(|| wrong("from", text, "a time that has come, such as 2026-01-02T03:04:05Z"))?
                .0
                .div_euclid(length)
        }
    };
    let metric = metric.ok_or_else(|| ApiError::invalid("metric", "is missing", "one of those in /openapi.json"))?;
    let agent = request.agent().ok_or_else(|| ApiError::invalid("agent", "is missing", "the name of an agent"))?;
    if !View::of(request.caller()).sees_agent(&agent) {
        return Err(ApiError::NotFound(format!("there is no agent {:?}", agent.as_str())));
    }
    let (by, name) = request.value("skill").map_or((HealthBy::All, ""), |skill| (HealthBy::Skill, skill));
    let series = HealthSeries { step, agent, by, name: name.to_owned() };
    let stored =
        request.hub.parts.store.health_series(series, Timestamp(from * length), POINTS.unsigned_abs() as usize).await;
    let mut stored = stored.map_err(ApiError::Store)?.into_iter().peekable();
    let mut points = Vec::new();
    for number in from..=now.min(from + POINTS - 1) {
        let at = Timestamp(number * length);
        let sum = stored.next_if(|(time, _)| *time == at).map(|(_, sum)| serde_json::from_slice(&sum));
        let sum: Sum = sum.and_then(Result::ok).unwrap_or_default();
        points.push(json!({ "at": at, "value": metric(&sum) }));
    }
    Ok(request.answer(StatusCode::OK, &json!({ "points": points })))
}
