//! `POST /publish`: a line of the journal, as others may write it. The topics of the hub itself are not for others.

use bytes::Bytes;
use http::{Method, Response, StatusCode};
use serde_json::{Map, Value, json};
use switchboard_engine::CallerRole;
use switchboard_engine::store::feed::JournalLine;
use switchboard_host::redact;
use switchboard_server::Body;

use super::error::ApiError;
use super::fields::Fields;
use super::request::ApiRequest;
use super::route::{Parameter, Route};
use crate::audit::Act;
use crate::topics::{is_reserved, is_topic};

pub(super) const ROUTE: Route =
    Route::new(Method::POST, "/publish", "Write a line of the journal", |request| Box::pin(answer(request)))
        .role(CallerRole::Admin)
        .enveloped()
        .body(&[
            Parameter::new("topic", "Words with dots between; required.").text(),
            Parameter::new("payload", "An object.").object(),
            Parameter::new("correlationId", "The work that it belongs to.").text(),
        ]);

async fn answer(mut request: ApiRequest<'_>) -> Result<Response<Body>, ApiError> {
    let mut fields = request.fields().await?;
    let topic = fields.text("topic", "words of letters, digits, - and _ with dots between");
    let correlation = fields.optional_text("correlationId", "a text");
    if !topic.is_empty() && !is_topic(&topic) {
        let wrong = format!("is {:?}", topic.chars().take(80).collect::<String>());
        fields.problem("topic", wrong, "words of letters, digits, - and _ with dots between, up to 256 characters");
    }
    let Some(mut payload) = payload(&mut fields) else {
        return Err(fields.finish().err().unwrap_or_else(|| ApiError::invalid("payload", "is no object", "an object")));
    };
    if let Some(correlation) = correlation {
        payload.insert("correlationId".to_owned(), correlation.into());
    }
    let mut payload = Value::Object(payload);
    redact::json(&mut payload);
    let payload = payload.to_string();
    let most = request.hub.parts.config.hub.journal.line;
    if payload.len() > most.length() {
        let right = format!("at most {most} (hub.journal.line)");
        fields.problem("payload", format!("has {} bytes", payload.len()), &right);
    }
    fields.finish()?;
    if is_reserved(&topic) {
        return Err(ApiError::Forbidden(format!(
            "{topic} is a topic that only this server writes: choose another one"
        )));
    }
    let line = JournalLine {
        at: request.hub.parts.clock.now(),
        owner: Some(request.caller().id.clone()),
        task: None,
        topic: topic.clone(),
        payload: Bytes::from(payload),
    };
    // What was published is the line before it.
    let (before, after) = (Value::Null, Value::Null);
    let act = Act { name: "publish", subject: &topic, agent: None, task: None, before, after };
    let written = request.hub.parts.store.journal(vec![line, request.did(act)]).await;
    let written = written.map_err(|error| ApiError::of_store("payload", error))?;
    let id = written.first().map(ToString::to_string);
    Ok(request.answer(StatusCode::ACCEPTED, &json!({ "id": id })))
}

/// The payload. It is read to the end, since what looks like a credential is redacted.
fn payload(fields: &mut Fields) -> Option<Map<String, Value>> {
    let Some(given) = fields.value("payload") else { return Some(Map::new()) };
    if !given.is_object() {
        fields.problem("payload", "is no object", "an object");
        return None;
    }
    let read = given.read();
    read.map_err(|error| fields.problem("payload", format!("cannot be read: {error}"), "an object")).ok()
}
