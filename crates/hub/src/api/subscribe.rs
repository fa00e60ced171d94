//! `GET /api/bus/subscribe`: the feed over a WebSocket, as earlier hubs have it. It is read only.

use http::{Response, StatusCode};
use serde_json::json;
use switchboard_engine::FeedClient;
use switchboard_server::{Body, NoWebSocket};

use super::error::ApiError;
use super::feed::{FROM, filter, start};
use super::request::ApiRequest;
use super::route::{Header, Parameter, Route, Style};
use crate::feed::{FeedMessages, FeedStream, View};

pub(super) const ROUTE: Route =
    Route::get("/api/bus/subscribe", "Everything that happens, over a WebSocket: each item is a message", |request| {
        Box::pin(answer(request))
    })
    .enveloped()
    .parameters(&[
        Parameter::new("topic", "Only these topics: `*` is one word, `#` at the end any number of them; required.")
            .like(r"^(?:(?!#\.)[^.]+\.)*[^.]+$")
            .repeated(),
        Parameter::new("agent", "Only what happens at this agent."),
        Parameter::new("task", "Only this task."),
        Parameter::new("context", "Only this conversation."),
        Parameter::new("correlation", "Only what belongs to this correlation id."),
        Parameter::new("view", "`full`, or `brief`: no payloads, of each task the newest item, four times a second.")
            .words(&["full", "brief"]),
        FROM,
    ])
    .headers(&[Header::LastEventId])
    .refusals(&[(426, "UPGRADE_REQUIRED")])
    .websocket();

async fn answer(request: ApiRequest<'_>) -> Result<Response<Body>, ApiError> {
    let filter = filter(&request)?;
    let brief = request.word("view", &[("full", false), ("brief", true)])?.unwrap_or(false);
    let start = start(&request)?;
    if filter.topics.is_empty() {
        return Err(ApiError::invalid("topic", "is missing", "say which topics, such as task.#; # is all of them"));
    }
    let view = View::of(request.caller());
    let handshake = match request.exchange.websocket() {
        Ok(handshake) => handshake,
        Err(NoWebSocket::Key) => {
            return Err(ApiError::invalid("Sec-WebSocket-Key", "is no key", "16 random bytes in base64"));
        }
        Err(refused) => return Ok(upgrade_required(refused)),
    };
    request.exchange.take_stream_slot().map_err(ApiError::Protocol)?;
    let stream = FeedStream::open(request.hub, view, filter, start, brief, FeedClient::WebSocket).await?;
    request.exchange.open_websocket(handshake, FeedMessages(stream)).map_err(ApiError::Protocol)
}

fn upgrade_required(refused: NoWebSocket) -> Response<Body> {
    let (status, code) = (StatusCode::UPGRADE_REQUIRED, "UPGRADE_REQUIRED");
    let refusal = ApiError::Conflict { status, code, message: refused.to_string(), more: json!({}) };
    let mut response = refusal.response(Style::Envelope);
    refused.headers(response.headers_mut());
    response
}
