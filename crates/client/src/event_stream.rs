//! The events of one connection (SSE). A truncated event is dropped; reconnecting is decided by the task stream.

use std::time::Duration;

use futures_util::FutureExt;
use http::header::CONTENT_TYPE;
use switchboard_a2a::jsonrpc::depth_exceeds;
use switchboard_a2a::sse::{EventReader, Frame, ReadError};
use switchboard_a2a::{Error as AgentError, StreamResponse, decode};
use switchboard_egress::{BodyError, ResponseBody};
use tokio::time::Instant;

use crate::exchange::{Answer, Exchange, Failure, MAX_DEPTH, PreparedRequest};
use crate::wire_format::WireFormat;
use crate::{not_a2a, trace};

/// How long the end of a response is waited for, whose last event has come: mostly it came with that. An agent that keeps its
/// streams open must not hold many connections for it.
const RELEASE_TIME: Duration = Duration::from_millis(200);

#[derive(Debug)]
pub(crate) enum StreamItem {
    Event {
        frame: Box<StreamResponse>,
        meta: EventMeta,
    },
    /// No event, but maybe an id or a retry time.
    KeepAlive(EventMeta),
    /// The agent sent an error.
    Error(AgentError),
    /// The stream was closed in order.
    End,
    /// The connection broke, was silent for too long, or sent what cannot be decoded.
    Broken(String),
    TooLarge {
        limit: usize,
    },
    /// An event is nested deeper than is read.
    TooDeep,
}

/// The SSE fields of an event.
#[derive(Debug, Default)]
pub(crate) struct EventMeta {
    /// Its id, for `Last-Event-ID`.
    pub(crate) id: Option<String>,
    /// The sequence number before it, if some are left out.
    pub(crate) after: Option<u64>,
    /// How long to wait before reconnecting.
    pub(crate) retry: Option<Duration>,
    /// Its size in bytes.
    pub(crate) size: usize,
}

pub(crate) struct EventStream {
    source: Source,
    format: WireFormat,
    idle: Duration,
    /// The deadline of the silence. Kept, so that cancelling `next` and calling it again does not restart it.
    silent_at: Option<Instant>,
}

enum Source {
    Events {
        body: ResponseBody,
        reader: Box<EventReader>,
        is_finished: bool,
    },
    /// The agent answered with one JSON value.
    Single(Option<Box<StreamResponse>>),
}

/// The events, as soon as the head of the response has come.
impl Answer for EventStream {
    async fn receive(exchange: Exchange<'_>, prepared: &PreparedRequest, timeout: Duration) -> Result<Self, Failure> {
        let began = Instant::now();
        let limits = &exchange.peer.limits;
        let response = exchange.open(prepared, timeout).await?;
        let media_type = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let is_events =
            media_type.is_some_and(|text| text.trim_start().to_ascii_lowercase().starts_with("text/event-stream"));
        let (format, idle) = (prepared.format, limits.idle);
        if is_events && response.status().is_success() {
            trace::response(response.status(), response.headers(), None);
            let reader = Box::new(EventReader::new(limits.event));
            let source = Source::Events { body: response.into_body(), reader, is_finished: false };
            return Ok(Self { source, format, idle, silent_at: None });
        }
        let (status, headers, body) = exchange.read_body(response, prepared, timeout, began).await?;
        let result = prepared.parse_result(status, &headers, body)?;
        let frame = format.read(decode::decode_stream, &result);
        let frame =
            frame.map_err(|_| not_a2a::error(&prepared.origin(), status.as_u16(), &headers, &result, MAX_DEPTH))?;
        Ok(Self { source: Source::Single(Some(Box::new(frame))), format, idle, silent_at: None })
    }
}

impl EventStream {
    /// Leaves the connection to the next request, after the last event that is wanted. The end of the response has mostly
    /// come with that event; an agent that keeps the stream open has a moment to end it.
    pub(crate) fn release(self) {
        let Source::Events { mut body, is_finished: false, .. } = self.source else { return };
        if let Some(Ok(None) | Err(_)) = body.next(RELEASE_TIME).now_or_never() {
            return;
        }
        tokio::spawn(async move {
            let end = async { while let Ok(Some(_)) = body.next(RELEASE_TIME).await {} };
            // One that says more, or stays open, loses its connection.
            let _ = tokio::time::timeout(RELEASE_TIME, end).await;
        });
    }

    /// The next item; cancel safe. After [`StreamItem::End`] and [`StreamItem::Broken`] there is none.
    pub(crate) async fn next(&mut self) -> StreamItem {
        let (body, reader, is_finished) = match &mut self.source {
            Source::Single(frame) => {
                return frame
                    .take()
                    .map_or(StreamItem::End, |frame| StreamItem::Event { frame, meta: EventMeta::default() });
            }
            Source::Events { body, reader, is_finished } => (body, reader, is_finished),
        };
        loop {
            match reader.next_event() {
                Err(ReadError::TooLarge { limit }) => return StreamItem::TooLarge { limit },
                Err(error) => return StreamItem::Broken(error.to_string()),
                Ok(Some(event)) => {
                    trace::event(&event.data);
                    if depth_exceeds(event.data.as_bytes(), MAX_DEPTH) {
                        return StreamItem::TooDeep;
                    }
                    let decoded = event.decode(self.format.dialect);
                    // An id without data at the end may belong to a truncated event.
                    let id = event.id.filter(|_| !(*is_finished && event.data.is_empty()));
                    let meta = EventMeta { size: event.data.len(), id, after: event.after, retry: event.retry };
                    return match decoded {
                        Ok(Frame::Response(frame)) => {
                            StreamItem::Event { frame: Box::new(self.format.received(*frame)), meta }
                        }
                        Ok(Frame::Error(error)) => StreamItem::Error(error),
                        Ok(Frame::Done) => StreamItem::End,
                        Ok(Frame::Ignored) => StreamItem::KeepAlive(meta),
                        // On some connections a truncated event looks like an orderly end.
                        Err(error) => StreamItem::Broken(format!("an event cannot be read: {error}")),
                    };
                }
                Ok(None) if *is_finished => return StreamItem::End,
                Ok(None) => match body.next(idle_timeout(&mut self.silent_at, self.idle)).await {
                    Ok(Some(piece)) => {
                        self.silent_at = None;
                        reader.feed(&piece);
                    }
                    Ok(None) => {
                        reader.finish();
                        *is_finished = true;
                    }
                    Err(BodyError::Late) => {
                        return StreamItem::Broken(format!("nothing came for {} s", self.idle.as_secs_f32()));
                    }
                    Err(fault) => return StreamItem::Broken(fault.to_string()),
                },
            }
        }
    }
}

/// The time left for the next byte, counted from the first wait for it.
fn idle_timeout(silent_at: &mut Option<Instant>, idle: Duration) -> Duration {
    let now = Instant::now();
    match silent_at.or_else(|| now.checked_add(idle)) {
        Some(at) => {
            *silent_at = Some(at);
            at.saturating_duration_since(now)
        }
        None => idle,
    }
}
