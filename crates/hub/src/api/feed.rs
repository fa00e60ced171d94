//! `GET /api/feed`: everything that happens, as an event stream, or as a page for `Accept: application/json`.

use http::header::{ACCEPT, HeaderName};
use http::{Response, StatusCode};
use serde::Serialize;
use switchboard_engine::FeedClient;
use switchboard_engine::store::feed::FeedCursor;
use switchboard_server::{Body, SMALL_RESPONSE};

use super::error::ApiError;
use super::request::{ApiRequest, wrong};
use super::route::{Header, Parameter, Route};
use crate::feed::{
    BackwardPage, BackwardQuery, FeedFilter, FeedItems, FeedPageQuery, FeedStream, Item, NewestOfTasks, Pattern,
    StreamStart, View, read_backward, read_page,
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
        FROM,
        Parameter::new("before", "Of a page: newest first, `now` or the cursor to go back from, in place of `from`.")
            .like(r"^(?:now|[0-9]+\.[0-9]+\.[0-9]+\.[0-9]+)$"),
        Parameter::new("pageSize", "Of a page: at most so many items, 50 unless it says so, up to 100.").integer(),
    ])
    .headers(&[Header::LastEventId])
    .streaming();

/// Where a reader begins.
pub(super) const FROM: Parameter =
    Parameter::new("from", "`now`, `oldest`, or the cursor to go on after. `Last-Event-ID` comes before it.")
        .like(r"^(?:now|oldest|[0-9]+\.[0-9]+\.[0-9]+\.[0-9]+)$");

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// Bytes of a page's items, but for what the last one means: what does not fit begins the next page. First a page of a small
/// response is read, which nearly all are, and one of this size once the caller's response budget has it.
pub(super) const PAGE_BYTES: usize = 4 << 20;

/// A page.
#[derive(Serialize)]
struct FeedPage {
    items: Vec<Item>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

async fn answer(mut request: ApiRequest<'_>) -> Result<Response<Body>, ApiError> {
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
        let stream = FeedStream::open(request.hub, view, filter, start, brief, FeedClient::Stream).await?;
        return Ok(request.exchange.event_stream(stream));
    }
    let floor = if view.has_role() { 0 } else { request.hub.engine.feed_floor() };
    if let Some(before) = request.value("before") {
        let before = bound(&request, before)?;
        let (view, filter, max_bytes) = (&view, &filter, PAGE_BYTES);
        let query = BackwardQuery { view, filter, logs: None, before, floor, size, max_bytes };
        let BackwardPage { mut items, next, .. } = read_back(&mut request, query).await?;
        if brief {
            items = newest(items.into_iter().rev());
            items.reverse();
        }
        let next = next.map(|next| next.to_string());
        return request.answer_reserved(StatusCode::OK, FeedPage { items, next }).await;
    }
    let start = start.into();
    let query = FeedPageQuery { view: &view, filter: &filter, start, floor, size, max_bytes: PAGE_BYTES };
    let FeedItems { mut items, next, .. } = read_forward(&mut request, query).await?;
    if brief {
        items = newest(items.into_iter());
    }
    request.answer_reserved(StatusCode::OK, FeedPage { items, next: Some(next.to_string()) }).await
}

/// A page within the caller's response budget.
async fn read_forward(request: &mut ApiRequest<'_>, query: FeedPageQuery<'_>) -> Result<FeedItems, ApiError> {
    request.reserve(SMALL_RESPONSE as u64).await?;
    let page = read_page(request.hub, &FeedPageQuery { max_bytes: SMALL_RESPONSE, ..query }).await?;
    if !page.is_cut {
        return Ok(page);
    }
    // A response that waits holds nothing, so it is read again.
    drop(page);
    request.reserve(query.max_bytes as u64).await?;
    Ok(read_page(request.hub, &query).await?)
}

/// The same of a page that goes back.
pub(super) async fn read_back(
    request: &mut ApiRequest<'_>,
    query: BackwardQuery<'_>,
) -> Result<BackwardPage, ApiError> {
    request.reserve(SMALL_RESPONSE as u64).await?;
    let page = read_backward(request.hub, &BackwardQuery { max_bytes: SMALL_RESPONSE, ..query }).await?;
    if !page.is_cut {
        return Ok(page);
    }
    drop(page);
    request.reserve(query.max_bytes as u64).await?;
    Ok(read_backward(request.hub, &query).await?)
}

/// Of each task its newest item, without its payload.
fn newest(items: impl Iterator<Item = Item>) -> Vec<Item> {
    let mut kept = NewestOfTasks::default();
    items.for_each(|item| kept.add(item));
    kept.into_items()
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
pub(super) fn start(request: &ApiRequest<'_>) -> Result<StreamStart, ApiError> {
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
        index: None,
    })
}
