//! `/api/channels`: messages of chat platforms, and which agents their channels talk to.

use http::{Method, Response, StatusCode};
use serde_json::{Value, json};
use switchboard_a2a::Part;
use switchboard_engine::CallerRole;
use switchboard_server::{Body, trace_headers};

use super::dispatch::parts;
use super::error::ApiError;
use super::fields::Fields;
use super::request::{ApiRequest, wrong};
use super::route::{Header, Parameter, Route};
use crate::channels::{Binding, ChannelError, ChannelMessage, PLATFORM, Place, is_platform, receive};

pub(super) const LIST: Route =
    Route::get("/api/channels", "List which agents the channels of chat platforms talk to", |request| {
        Box::pin(list(request))
    })
    .role(CallerRole::Viewer);
pub(super) const RECEIVE: Route =
    Route::new(Method::POST, "/api/channels/{platform}/messages", "Hand on a message of a chat platform", |request| {
        Box::pin(answer(request))
    })
    .body(&[
        Parameter::new("channel", "The platform's id of the channel or direct conversation; required.").text(),
        Parameter::new("thread", "The platform's id of the thread in it, if there is one.").text(),
        Parameter::new("user", "Who says it.").text(),
        Parameter::new("dm", "Whether it is a direct conversation.").flag(),
        Parameter::new("text", "What is said; it or `parts` is required.").text(),
        Parameter::new("parts", "The parts of an A2A 1.0 message, in place of a text.").list(),
        Parameter::new("messageId", "The platform's id of the message: told again it is the same one.").text(),
    ])
    .headers(&[Header::Trace])
    .refusals(&[(429, "TOO_MANY")])
    .sending();

/// The longest name that a platform gives something.
const NAME_BYTES: usize = 256;
/// When a refused message may be sent again: an agent that works may take longer.
const RETRY_SECONDS: u64 = 5;

async fn list(request: ApiRequest<'_>) -> Result<Response<Body>, ApiError> {
    let table = request.hub.channels.table();
    let sees =
        |binding: &&Binding| binding.agent.as_ref().is_none_or(|agent| request.caller().scopes.agents.covers(agent));
    let items: Vec<Value> = table.bindings.iter().filter(sees).map(shown).collect();
    let mut answer = json!({ "items": items });
    if let Some(problem) = &table.problem {
        answer["problem"] = switchboard_host::redact::text(problem).into();
    }
    Ok(request.answer(StatusCode::OK, &answer))
}

fn shown(binding: &Binding) -> Value {
    let mut shown = json!({ "platform": binding.platform });
    let mut put = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            shown[name] = value;
        }
    };
    put("channel", binding.channel.as_deref().map(Value::from));
    put("agent", binding.agent.as_ref().map(|agent| agent.as_str().into()));
    put("skill", binding.skill.as_deref().map(Value::from));
    let spans =
        [("debounceMs", binding.debounce), ("maxDebounceMs", binding.max_debounce), ("stickyMs", binding.sticky)];
    for (name, span) in spans {
        put(name, span.and_then(|span| u64::try_from(span.as_millis()).ok()).map(Value::from));
    }
    shown
}

async fn answer(mut request: ApiRequest<'_>) -> Result<Response<Body>, ApiError> {
    let trace = trace_headers::read(&request.exchange.parts.headers).map_err(ApiError::Protocol)?;
    let platform = request.variable("platform").to_owned();
    if !is_platform(&platform) {
        return Err(wrong("platform", &platform, PLATFORM));
    }
    let settings = &request.hub.parts.config.hub.channels;
    let (longest, joined) = (settings.message, request.hub.channels.joined());
    let max_parts = request.hub.parts.config.limits.parts.get();
    let mut fields = request.fields().await?;
    let place = Place {
        platform,
        channel: fields.text("channel", "the platform's id of the channel"),
        thread: fields.optional_text("thread", "the platform's id of the thread"),
        is_dm: fields.flag("dm"),
    };
    let user = fields.optional_text("user", "who says it");
    let id = fields.optional_text("messageId", "the platform's id of the message");
    let names = [
        ("channel", Some(&place.channel)),
        ("thread", place.thread.as_ref()),
        ("user", user.as_ref()),
        ("messageId", id.as_ref()),
    ];
    for (name, given) in names {
        check_name(&mut fields, name, given.map_or("", String::as_str));
    }
    let parts = parts(&mut fields, "text", max_parts);
    let bytes = serde_json::to_vec(&parts).map_or(usize::MAX, |parts| parts.len());
    if bytes > longest.length().min(joined) {
        let key = if parts.first().is_some_and(Part::is_bare_text) && parts.len() == 1 { "text" } else { "parts" };
        fields.problem(key, format!("has {bytes} bytes"), &format!("at most {longest} (hub.channels.message)"));
    }
    fields.finish()?;
    let message = ChannelMessage { place, user, parts, id, trace };
    let (task, context) = receive(request.hub, request.caller(), message).await.map_err(refused)?;
    Ok(request.answer(StatusCode::ACCEPTED, &json!({ "taskId": task, "contextId": context })))
}

/// What names something is on one line.
fn check_name(fields: &mut Fields, name: &str, given: &str) {
    if given.len() > NAME_BYTES || given.chars().any(char::is_control) {
        let right = format!("at most {NAME_BYTES} bytes and no control characters");
        fields.problem(name, format!("has {} bytes, or control characters", given.len()), &right);
    }
}

fn refused(error: ChannelError) -> ApiError {
    match error {
        ChannelError::Full(_) => ApiError::Later { problem: error.to_string(), seconds: RETRY_SECONDS },
        ChannelError::Engine(error) => ApiError::Engine(error),
    }
}
