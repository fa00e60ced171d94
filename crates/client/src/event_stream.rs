//! One connection that carries events. What is torn off in the middle is left out; taking it up again is not decided
//! here.

use std::time::Duration;

use http::header::CONTENT_TYPE;
use switchboard_a2a::sse::{EventReader, Frame, ReadError};
use switchboard_a2a::{Error as AgentError, StreamResponse, decode};
use switchboard_egress::{AnswerBody, BodyFault};
use tokio::time::Instant;

use crate::exchange::{Exchange, Failure, PreparedRequest};
use crate::trace;
use crate::wire_format::WireFormat;

/// What is heard on a connection.
#[derive(Debug)]
pub(crate) enum StreamItem {
    /// Something the agent said.
    Event { frame: Box<StreamResponse>, meta: EventMeta },
    /// Nothing but where to go on, or when.
    KeepAlive(EventMeta),
    /// The agent gave up.
    Error(AgentError),
    /// Nothing more will come: the end was said or came in order.
    End,
    /// The connection is torn, silent, or says what cannot be read.
    Broken(String),
    /// An event is larger than what is read.
    TooLarge { limit: usize },
}

/// Where an event stands.
#[derive(Debug, Default)]
pub(crate) struct EventMeta {
    /// Where to go on after it.
    pub(crate) id: Option<String>,
    /// The number before it, if some are left out.
    pub(crate) after: Option<u64>,
    /// How long to wait before coming back.
    pub(crate) retry: Option<Duration>,
    /// How many bytes it has.
    pub(crate) size: usize,
}

/// One connection.
pub(crate) struct EventStream {
    source: Source,
    format: WireFormat,
    idle: Duration,
    /// When it has been silent for too long. Kept, so that giving up a call and making another does not begin anew.
    silent_at: Option<Instant>,
}

enum Source {
    Events {
        body: AnswerBody,
        reader: Box<EventReader>,
        is_finished: bool,
    },
    /// The agent answered with all there is.
    Single(Option<Box<StreamResponse>>),
}

impl EventStream {
    /// Asks, and waits for the head of the answer.
    pub(crate) async fn open(
        exchange: Exchange<'_>,
        prepared: &PreparedRequest,
        timeout: Duration,
    ) -> Result<Self, Failure> {
        let began = Instant::now();
        let limits = &exchange.peer.limits;
        let response = exchange.open(prepared, timeout).await?;
        let media_type = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let is_events =
            media_type.is_some_and(|text| text.trim_start().to_ascii_lowercase().starts_with("text/event-stream"));
        let (format, idle) = (prepared.format(), limits.idle);
        if is_events && response.status().is_success() {
            trace::response(response.status(), response.headers(), None);
            let reader = Box::new(EventReader::new(limits.event));
            let source = Source::Events { body: response.into_body(), reader, is_finished: false };
            return Ok(Self { source, format, idle, silent_at: None });
        }
        let (status, headers, body) = exchange.read_body(response, prepared, timeout, began).await?;
        let result = exchange.parse_result(prepared, status, &headers, body)?;
        let frame = format.read(decode::decode_stream, &result);
        let frame = frame.map_err(|_| crate::not_a2a::error(&prepared.origin(), status.as_u16(), &headers, &result))?;
        Ok(Self { source: Source::Single(Some(Box::new(frame))), format, idle, silent_at: None })
    }

    /// The next thing that is heard; a call that is given up loses nothing. After [`StreamItem::End`] and [`StreamItem::Broken`] there
    /// is nothing.
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
                    let decoded = event.decode(self.format.dialect);
                    // A number without its event may be one whose event was cut off.
                    let id = event.id.filter(|_| !(*is_finished && event.data.is_empty()));
                    let meta = EventMeta { size: event.data.len(), id, after: event.after, retry: event.retry };
                    return match decoded {
                        Ok(Frame::Response(frame)) => {
                            StreamItem::Event { frame: Box::new(self.format.received(*frame)), meta }
                        }
                        Ok(Frame::Error(error)) => StreamItem::Error(error),
                        Ok(Frame::Done) => StreamItem::End,
                        Ok(Frame::Nothing) => StreamItem::KeepAlive(meta),
                        // What was cut off in the middle looks like an orderly end on some connections.
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
                    Err(BodyFault::Late) => {
                        return StreamItem::Broken(format!("nothing came for {} s", self.idle.as_secs_f32()));
                    }
                    Err(fault) => return StreamItem::Broken(fault.to_string()),
                },
            }
        }
    }
}

/// How long to wait for the next byte, from the first time that it is waited for.
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
