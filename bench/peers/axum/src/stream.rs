//! Server-sent events by text: `stream:N` as fast as possible, `streamy:N` with a yield between chunks,
//! `hold` and subscriptions stay open.

use axum::body::Body;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream::{self, StreamExt};
use serde_json::Value;
use std::convert::Infallible;

use crate::reply::{self, Artifact, ArtifactUpdate, Event, Ids, Status, StatusUpdate, Task};
use crate::request::Message;

pub(crate) fn message(id: Value, message: &Message) -> Response {
    let ids = Ids::new();
    let first = first_frame(&id, &ids, Some(message));
    let Some(plan) = Plan::of(message.text()) else {
        return held(first);
    };
    let chunks = stream::iter(0..=plan.chunks).then(move |index| {
        let frame = if index < plan.chunks { chunk(&id, &ids, index, plan.chunks) } else { last_frame(&id, &ids) };
        async move {
            if plan.yields {
                tokio::task::yield_now().await;
            }
            frame
        }
    });
    respond(stream::once(async move { first }).chain(chunks))
}

pub(crate) fn subscription(id: Value) -> Response {
    let first = first_frame(&id, &Ids::new(), None);
    held(first)
}

/// How many chunks, and whether others may run between them.
#[derive(Clone, Copy)]
struct Plan {
    chunks: u32,
    yields: bool,
}

impl Plan {
    /// None for `hold`, which has no end.
    fn of(text: &str) -> Option<Self> {
        match text.split_once(':') {
            Some(("stream", count)) => Some(Self { chunks: count.parse().ok()?, yields: false }),
            Some(("streamy", count)) => Some(Self { chunks: count.parse().ok()?, yields: true }),
            _ if text == "hold" => None,
            _ => Some(Self { chunks: 1, yields: false }),
        }
    }
}

fn held(first: Bytes) -> Response {
    respond(stream::once(async move { first }).chain(stream::pending()))
}

fn respond(frames: impl futures_util::Stream<Item = Bytes> + Send + 'static) -> Response {
    let headers = [(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-cache")];
    (headers, Body::from_stream(frames.map(Ok::<_, Infallible>))).into_response()
}

fn first_frame(id: &Value, ids: &Ids, message: Option<&Message>) -> Bytes {
    let task = Task {
        id: &ids.task,
        context_id: &ids.context,
        status: Status::now("TASK_STATE_WORKING"),
        artifacts: Vec::new(),
        history: message.map(|message| ids.placed(message)).into_iter().collect(),
    };
    frame(id, &Event::Task(task))
}

fn chunk(id: &Value, ids: &Ids, index: u32, chunks: u32) -> Bytes {
    let update = ArtifactUpdate {
        task_id: &ids.task,
        context_id: &ids.context,
        artifact: Artifact::text(format!("chunk {index} ")),
        append: index > 0,
        last_chunk: index + 1 == chunks,
    };
    frame(id, &Event::ArtifactUpdate(update))
}

fn last_frame(id: &Value, ids: &Ids) -> Bytes {
    let status = Status::now("TASK_STATE_COMPLETED");
    frame(id, &Event::StatusUpdate(StatusUpdate { task_id: &ids.task, context_id: &ids.context, status }))
}

fn frame(id: &Value, event: &Event<'_>) -> Bytes {
    let data = reply::encode(id, event);
    let mut bytes = Vec::with_capacity(data.len() + 8);
    bytes.extend_from_slice(b"data: ");
    bytes.extend_from_slice(&data);
    bytes.extend_from_slice(b"\n\n");
    Bytes::from(bytes)
}
