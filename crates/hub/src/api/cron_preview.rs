//! `POST /api/cron:preview`: when a cron expression would be due, before a ceremony is made of it.

use http::{Method, Response, StatusCode};
use serde_json::{Value, json};
use switchboard_server::Body;

use super::error::ApiError;
use super::request::ApiRequest;
use super::route::{Parameter, Route};
use crate::ceremonies::problem_of;
use crate::ceremonies::schedule::{ClockChange, Occurrence, Schedule};

pub(super) const ROUTE: Route =
    Route::new(Method::POST, "/api/cron:preview", "Say when a cron expression is due", |request| {
        Box::pin(answer(request))
    })
    .body(&[
        Parameter::new("schedule", "A cron expression of five fields, or six with seconds; required.").text(),
        Parameter::new("timezone", "A zone of the IANA database; `UTC` if absent.").text(),
        Parameter::new("count", "How many times, 1 to 100; 5 if absent.").integer(),
    ]);

async fn answer(mut request: ApiRequest<'_>) -> Result<Response<Body>, ApiError> {
    let mut fields = request.fields().await?;
    let expression = fields.text("schedule", "a cron expression such as 30 9 * * MON-FRI");
    let zone = fields.optional_text("timezone", "a time zone such as Europe/Berlin");
    let count = fields.number("count", 5, 1..=100);
    fields.finish()?;
    let schedule = Schedule::cron(&expression, zone.as_deref().unwrap_or("UTC")).map_err(|error| {
        let (member, wrong) = problem_of(&error, "schedule");
        let right = match member {
            "timezone" => "a name such as Europe/Berlin",
            _ => "five fields, or six with seconds in front, such as 30 9 * * MON-FRI",
        };
        ApiError::invalid(member, wrong, right)
    })?;
    let runs = schedule.occurrences(request.hub.parts.clock.now(), count);
    let runs: Vec<Value> = runs.iter().map(shown).collect();
    Ok(request.answer(StatusCode::OK, &json!({ "runs": runs })))
}

/// A time at which a run is due, and what the clocks of its zone do to it.
pub(super) fn shown(run: &Occurrence) -> Value {
    let mut shown = json!({ "at": run.at, "local": run.local });
    match run.clock_change {
        Some(ClockChange::Skipped) => shown["dst"] = "skipped".into(),
        Some(ClockChange::Repeated) => shown["dst"] = "repeated".into(),
        None => {}
    }
    shown
}
