//! `POST /api/operator/message`: something that an agent or a caller wants its operators to know.

use std::collections::HashMap;

use bytes::Bytes;
use http::{Method, Response, StatusCode};
use parking_lot::Mutex;
use serde_json::json;
use switchboard_a2a::Timestamp;
use switchboard_engine::CallerId;
use switchboard_engine::store::feed::JournalLine;
use switchboard_host::redact;
use switchboard_server::Body;

use super::error::ApiError;
use super::request::ApiRequest;
use super::route::{Parameter, Route};

pub(super) const ROUTE: Route =
    Route::new(Method::POST, "/api/operator/message", "Tell the operators something", |request| {
        Box::pin(answer(request))
    })
    .enveloped()
    .body(&[
        Parameter::new("message", "The text; required.").text(),
        Parameter::new("urgency", "`low`, `normal`, `high` or `urgent`; `normal` if absent.")
            .words(&["low", "normal", "high", "urgent"]),
        Parameter::new("topic", "What it is about; it counts into the size of the message.").text(),
    ])
    .refusals(&[(429, "TOO_MANY")]);

const MINUTE_MS: i64 = 60_000;
const URGENCIES: [(&str, &str); 4] = [("low", "low"), ("normal", "normal"), ("high", "high"), ("urgent", "urgent")];

/// How many messages each caller has written in the current minute.
#[derive(Default)]
pub(crate) struct MessageCounts {
    state: Mutex<(i64, HashMap<CallerId, usize>)>,
}

impl MessageCounts {
    /// Counts one more, or says in how many seconds there may be one.
    fn take(&self, caller: &CallerId, now: Timestamp, per_minute: usize) -> Result<(), u64> {
        let minute = now.0.div_euclid(MINUTE_MS);
        let mut state = self.state.lock();
        if state.0 != minute {
            *state = (minute, HashMap::new());
        }
        let count = state.1.entry(caller.clone()).or_default();
        if *count >= per_minute {
            let left = (minute + 1) * MINUTE_MS - now.0;
            return Err(u64::try_from(left).unwrap_or(0).div_ceil(1_000).max(1));
        }
        *count += 1;
        Ok(())
    }
}

async fn answer(mut request: ApiRequest<'_>) -> Result<Response<Body>, ApiError> {
    let limits = &request.hub.parts.config.hub.messages;
    let (per_minute, longest) = (limits.per_minute.get(), limits.size);
    let mut fields = request.fields().await?;
    let message = fields.text("message", "the text");
    let urgency = fields.word("urgency", &URGENCIES).unwrap_or("normal");
    let about = fields.optional_text("topic", "a text");
    let of_topic = about.as_ref().map_or(0, String::len);
    if message.len() > longest.length() {
        let right = format!("at most {longest} (hub.messages.size)");
        fields.problem("message", format!("has {} bytes", message.len()), &right);
    } else if message.len() + of_topic > longest.length() {
        let right = format!("with the message at most {longest} (hub.messages.size)");
        fields.problem("topic", format!("has {of_topic} bytes"), &right);
    }
    fields.finish()?;
    let (message, about) = (redact::text(&message), about.map(|about| redact::text(&about)));
    let payload = json!({ "message": message, "urgency": urgency, "topic": about }).to_string();
    let most = request.hub.parts.config.hub.journal.line;
    if payload.len() > most.length() {
        let right = format!("at most {most} (hub.journal.line)");
        return Err(ApiError::invalid("message", format!("is a line of {} bytes", payload.len()), right));
    }
    let (caller, now) = (request.caller().id.clone(), request.hub.parts.clock.now());
    request.hub.messages.take(&caller, now, per_minute).map_err(|seconds| ApiError::Later {
        problem: format!("a caller may write {per_minute} messages a minute (hub.messages.perMinute)"),
        seconds,
    })?;
    let line = JournalLine {
        at: now,
        owner: Some(caller),
        task: None,
        topic: "operator.message".to_owned(),
        payload: Bytes::from(payload),
    };
    let written = request.hub.parts.store.journal(vec![line]).await;
    let written = written.map_err(|error| ApiError::of_store("message", error))?;
    let id = written.first().map(ToString::to_string);
    Ok(request.answer(StatusCode::ACCEPTED, &json!({ "id": id })))
}
