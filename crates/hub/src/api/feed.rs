//! `GET /api/feed`: everything that happens, as an event stream, or as a page for `Accept: application/json`.

use http::header::{ACCEPT, HeaderName};
use http::{Response, StatusCode};
use serde_json::json;
use switchboard_engine::store::feed::FeedCursor;
use switchboard_server::Body;

use super::error::ApiError;
use super::request::{ApiRequest, wrong};
use super::route::{Header, Parameter, Route};
use crate::feed::{
    BackwardQuery, FeedFilter, FeedPageQuery, FeedStream, Item, Pattern, StreamStart, View, gather, read_backward,
    read_page,
};

pub(super) const ROUTE: Route =
    Route::get("/api/feed", "Everything that happens, as a stream or page by page", |request| {
        Box::pin(answer(request))
    })
    .parameters(&[
        Parameter::new("topic", "Only these topics: `*` is one word, `#` at the end any number of them.")
            .like(r"^(?:(?!#\.)[^.]+\.)*[^.]+$")
            .repeated(),
        Parameter::new("agent", "Only what happens at this agent."),
        Parameter::new("task", "Only this task."),
        Parameter::new("context", "Only this conversation."),
        Parameter::new("correlation", "Only what belongs to this correlation id."),
        Parameter::new(
            "view",
            "`full`, or `brief`: no payloads, of each task the newest item; a stream sends them four times a second.",
        )
        .words(&["full", "brief"]),
        Parameter::new("from", "`now`, `oldest`, or the cursor to go on after. `Last-Event-ID` comes before it.")
            .like(r"^(?:now|oldest|[0-9]+\.[0-9]+\.[0-9]+\.[0-9]+)$"),
        Parameter::new("before", "Of a page: newest first, `now` or the cursor to go back from, in place of `from`.")
            .like(r"^(?:now|[0-9]+\.[0-9]+\.[0-9]+\.[0-9]+)$"),
        Parameter::new("pageSize", "Of a page: at most so many items, 50 unless it says so, up to 100.").integer(),
    ])
    .headers(&[Header::LastEventId])
    .streaming();

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

async fn answer(request: ApiRequest<'_>) -> Result<Response<Body>, ApiError> {
    let filter = filter(&request)?;
    let brief = request.word("view", &[("full", false), ("brief", true)])?.unwrap_or(false);
    let start = start(&request)?;
    let size = request.number("pageSize", 50, 1..=100)?;
    let view = View::of(request.caller());
    if !wants_page(&request) {
        if request.value("pageSize").is_some() {
            return Err(ApiError::invalid("pageSize", "is for pages", "send Accept: application/json for a page"));
        }
        if request.value("before").is_some() {
            return Err(ApiError::invalid("before", "is for pages", "send Accept: application/json for a page"));
        }
        request.exchange.take_stream_slot().map_err(ApiError::Protocol)?;
        let stream = FeedStream::open(request.hub, view, filter, start, brief).await?;
        return Ok(request.exchange.event_stream(stream));
    }
    let floor = if view.has_role() { 0 } else { request.hub.engine.feed_floor() };
    if let Some(before) = request.value("before") {
        let before = bound(&request, before)?;
        let query = BackwardQuery { view: &view, filter: &filter, before, floor, size };
        let mut page = read_backward(request.hub, &query).await?;
        if brief {
            page.items = newest(page.items.into_iter().rev());
            page.items.reverse();
        }
        let mut answer = json!({ "items": page.items });
        if let Some(next) = page.next {
            answer["next"] = next.to_string().into();
        }
        return Ok(request.answer(StatusCode::OK, &answer));
    }
    let query = FeedPageQuery { view: &view, filter: &filter, start: start.into(), floor, size };
    let (items, next) = read_page(request.hub, &query).await?;
    let items = if brief { newest(items.into_iter()) } else { items };
    Ok(request.answer(StatusCode::OK, &json!({ "items": items, "next": next.to_string() })))
}

/// Of each task its newest item, without its payload.
fn newest(items: impl Iterator<Item = Item>) -> Vec<Item> {
    let mut kept = Vec::new();
    items.for_each(|item| gather(&mut kept, item));
    kept
}

/// The place to go back from; nothing is the newest item.
fn bound(request: &ApiRequest<'_>, given: &str) -> Result<Option<FeedCursor>, ApiError> {
    if request.value("from").is_some() {
        return Err(ApiError::invalid("before", "is there beside from", "one of the two"));
    }
    if given == "now" {
        return Ok(None);
    }
    FeedCursor::parse(given).map(Some).ok_or_else(|| wrong("before", given, "now, or the id of an item"))
}

fn wants_page(request: &ApiRequest<'_>) -> bool {
    let accepted = request.exchange.parts.headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let accepted: Vec<&str> = accepted.flat_map(|value| value.split(',')).map(str::trim).collect();
    let named = |media_type: &str| accepted.iter().any(|value| value.split(';').next() == Some(media_type));
    named("application/json") && !named("text/event-stream")
}

/// Where to begin. A client that reconnects says it by itself.
fn start(request: &ApiRequest<'_>) -> Result<StreamStart, ApiError> {
    let last = request.exchange.parts.headers.get(LAST_EVENT_ID).and_then(|value| value.to_str().ok());
    let (name, given) = match (last, request.value("from")) {
        (Some(last), _) => ("Last-Event-ID", last),
        (None, Some(from)) => ("from", from),
        (None, None) => return Ok(StreamStart::Now),
    };
    match given {
        "now" if name == "from" => Ok(StreamStart::Now),
        "oldest" if name == "from" => Ok(StreamStart::Oldest),
        cursor => FeedCursor::parse(cursor)
            .map(StreamStart::After)
            .ok_or_else(|| wrong(name, cursor, "now, oldest, or the id of an item")),
    }
}

pub(super) fn filter(request: &ApiRequest<'_>) -> Result<FeedFilter, ApiError> {
    let pattern = |text: &str| {
        let right = "words with dots between; * is one word, # at the end any number of them";
        Pattern::parse(text).ok_or_else(|| wrong("topic", text, right))
    };
    Ok(FeedFilter {
        topics: request.values("topic").map(pattern).collect::<Result<_, _>>()?,
        agent: request.agent(),
        task: request.value("task").map(Into::into),
        context: request.value("context").map(Into::into),
        correlation: request.value("correlation").map(str::to_owned),
    })
}
