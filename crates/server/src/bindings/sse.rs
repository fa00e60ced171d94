//! Event streams (SSE): a subscription to a task's log, written as server-sent events.
//!
//! All events that are ready go out in one buffer. The stored line of an event is its v1.0 frame, so v1.0 readers get it
//! as it is; for v0.3 it is translated once and shared by all readers.

use std::io::Write;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use http::Response;
use switchboard_a2a::{Dialect, Error, ErrorKind, Message, Task, encode, jsonrpc, rest_files};
use switchboard_engine::{Cursor, Error as Refusal, LogStream, LoggedEvent, SendStream, Seq, StreamEnd, Subscription};
use tokio::time::Instant;

use super::error::from_engine;
use super::response::{self, Binding};
use super::{render, task};
use crate::body::StreamItem;
use crate::edge::stream_slots::StreamSlot;
use crate::response_budget::{ReservedBytes, SMALL};
use crate::{Body, CallerIdentity, State};

/// Sent at graceful shutdown: reconnect in a second.
const RECONNECT: &[u8] = b"retry: 1000\n\n";
/// The SSE keep-alive, which keeps proxies and readers from timing out.
const PING: Bytes = Bytes::from_static(b": ping\n\n");

/// About the bytes around an event in its frame.
const AROUND_EVENT: usize = 128;

/// The stream of an operation.
pub(super) struct Events {
    pub(super) source: Source,
    /// The event after which it ends; v0.3 marks that event as final.
    pub(super) until: StreamEnd,
    pub(super) history_length: Option<u32>,
    /// Whether the reader expects base64 of base64.
    pub(super) files_twice: bool,
    /// Given back at the end.
    pub(super) _slot: StreamSlot,
    /// Reserved bytes for what is sent next: at first the first frame, where it is large.
    pub(super) reserved: Option<ReservedBytes>,
}

pub(super) enum Source {
    /// The agent has not yet chosen between a task and a message.
    Undecided(BoxFuture<'static, SendStream>),
    Message(Box<Message>),
    /// A task, and the number that was sent last.
    Task {
        first: Option<Box<(Cursor, Task)>>,
        stream: LogStream,
        last_sent: Seq,
    },
    Over,
}

impl From<SendStream> for Source {
    fn from(streamed: SendStream) -> Self {
        match streamed {
            SendStream::Message(message) => Self::Message(Box::new(message)),
            SendStream::Task(Subscription { first, stream }) => {
                let last_sent = stream.after();
                Self::Task { first: first.map(Box::new), stream, last_sent }
            }
        }
    }
}

pub(super) fn response(
    state: &Arc<State>,
    identity: &Arc<CallerIdentity>,
    dialect: Dialect,
    binding: Binding,
    events: Events,
) -> Response<Body> {
    let stream = EventStream {
        frames: Frames { files_twice: events.files_twice, ..Frames::new(dialect, binding) },
        events,
        state: Arc::clone(state),
        identity: Arc::clone(identity),
        ended: false,
        quiet_until: Instant::now() + state.options.ping,
    };
    let chunks = futures_util::stream::unfold(stream, |mut stream| async move {
        let chunk = stream.next().await?;
        stream.quiet_until = Instant::now() + stream.state.options.ping;
        Some((chunk, stream))
    });
    response::events(dialect.version(), Body::stream(chunks))
}

/// A stream that is nothing but one error, for readers that take no other media type.
pub(super) fn failure(dialect: Dialect, binding: Binding, failed: &Error) -> Response<Body> {
    let mut bytes = Vec::with_capacity(256);
    Frames::new(dialect, binding).error(failed, &mut bytes);
    response::events(dialect.version(), Body::full(bytes))
}

struct EventStream {
    events: Events,
    frames: Frames,
    state: Arc<State>,
    identity: Arc<CallerIdentity>,
    /// The last event of this stream was sent.
    ended: bool,
    quiet_until: Instant,
}

/// The next events of a log; none at its end.
type NextEvents = Result<Option<Vec<Arc<LoggedEvent>>>, Refusal>;

impl Source {
    /// Waits for the next events, or for the agent's choice, which comes without any. Cancellation-safe.
    async fn next_events(&mut self) -> NextEvents {
        match self {
            Self::Undecided(decision) => {
                *self = Self::from(decision.await);
                Ok(Some(Vec::new()))
            }
            Self::Task { stream, .. } => stream.next().await,
            Self::Message(_) | Self::Over => Ok(None),
        }
    }

    /// Advances to an event; returns the number that was sent before it.
    fn advance(&mut self, seq: Seq) -> Seq {
        match self {
            Self::Task { last_sent, .. } => std::mem::replace(last_sent, seq),
            Self::Undecided(_) | Self::Message(_) | Self::Over => seq,
        }
    }
}

impl EventStream {
    async fn next(&mut self) -> Option<StreamItem> {
        loop {
            self.reserve_next().await?;
            if let Some(bytes) = self.first_frame().await {
                return Some(self.chunk(bytes));
            }
            if matches!(self.events.source, Source::Over) {
                return None;
            }
            let events = tokio::select! {
                biased;
                () = self.identity.revoked.cancelled() => return None,
                events = self.events.source.next_events() => events,
                () = tokio::time::sleep_until(self.quiet_until) => {
                    // What was read was not for this stream, and the next event may take hours.
                    self.events.reserved = None;
                    return Some((PING, None));
                }
            };
            let bytes = match &events {
                Ok(Some(events)) => length(events),
                Ok(None) | Err(_) => 0,
            };
            self.reserve(bytes).await?;
            let mut bytes = Vec::new();
            self.write(events, &mut bytes);
            if !bytes.is_empty() {
                return Some(self.chunk(bytes));
            }
        }
    }

    /// Reserves what will be copied next: the first frame, or events that are no longer in memory. Those in memory are
    /// shared by all streams, and reserved when they come.
    async fn reserve_next(&mut self) -> Option<()> {
        let bytes = match &self.events.source {
            Source::Task { first: Some(_), stream, .. } => usize::try_from(stream.task_bytes()).unwrap_or(usize::MAX),
            Source::Task { stream, .. } => stream.unread_bytes(),
            Source::Undecided(_) | Source::Message(_) | Source::Over => 0,
        };
        self.reserve(bytes).await
    }

    /// Reserves bytes unless some are reserved; none if the stream has to end instead.
    async fn reserve(&mut self, bytes: usize) -> Option<()> {
        if bytes == 0 || self.events.reserved.is_some() {
            return Some(());
        }
        let responses = &self.state.responses;
        let reserved = match responses.try_reserve(&self.identity, bytes) {
            Some(reserved) => reserved,
            None => tokio::select! {
                biased;
                () = self.identity.revoked.cancelled() => return None,
                reserved = Box::pin(responses.reserve(&self.identity, bytes)) => reserved,
                // The kernel has stopped, and the log will not go on.
                () = self.state.engine.drained().cancelled() => responses.force(&self.identity, bytes),
            },
        };
        self.events.reserved = Some(reserved);
        Some(())
    }

    fn chunk(&mut self, bytes: Vec<u8>) -> StreamItem {
        let mut reserved = self.events.reserved.take();
        if let Some(reserved) = &mut reserved {
            reserved.resize(bytes.len());
        }
        (bytes.into(), reserved)
    }

    /// The first frame, and the events that are ready with it.
    async fn first_frame(&mut self) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        let dialect = self.frames.dialect;
        match &mut self.events.source {
            Source::Message(message) => {
                if self.frames.files_twice {
                    rest_files::add_layer(&mut **message);
                }
                self.frames.result(None, &encode::encode_send_message(dialect, message), &mut bytes);
                self.events.source = Source::Over;
                return Some(bytes);
            }
            Source::Task { first, stream, .. } => {
                let (cursor, mut snapshot) = *first.take()?;
                task::trim(&mut snapshot, self.events.history_length);
                if self.frames.files_twice {
                    rest_files::add_layer(&mut snapshot);
                }
                let is_large = stream.task_bytes() > SMALL as u64;
                let encoded = if is_large {
                    let slot = self.state.responses.render_slot(&self.identity).await;
                    let encoding = render::off_thread(move || {
                        let encoded = encode::encode_send_task(dialect, &snapshot);
                        drop((slot, snapshot));
                        Ok(encoded)
                    });
                    encoding.await
                } else {
                    Ok(encode::encode_send_task(dialect, &snapshot))
                };
                match encoded {
                    Ok(encoded) => self.frames.result(Some(cursor), &encoded, &mut bytes),
                    Err(failed) => {
                        self.fail(&failed, &mut bytes);
                        return Some(bytes);
                    }
                }
            }
            Source::Undecided(_) | Source::Over => return None,
        }
        if let Some(events) = self.events.source.next_events().now_or_never() {
            self.write(events, &mut bytes);
        }
        Some(bytes)
    }

    /// During graceful shutdown tasks may still end, so a stream goes on until the kernel has drained.
    fn write(&mut self, events: NextEvents, out: &mut Vec<u8>) {
        match events {
            Ok(Some(events)) => {
                out.reserve(length(&events));
                for event in &events {
                    let before = self.events.source.advance(event.seq);
                    if let Err(failed) = self.frames.event(event, before, self.events.until, out) {
                        return self.fail(&failed, out);
                    }
                    self.ended |= self.events.until.ends_at(event.kind);
                }
            }
            Ok(None) | Err(_) if self.state.engine.drained().is_cancelled() && !self.ended => {
                out.extend_from_slice(RECONNECT);
                self.events.source = Source::Over;
            }
            Ok(None) => self.events.source = Source::Over,
            Err(refusal) => self.fail(&from_engine(refusal), out),
        }
    }

    fn fail(&mut self, failed: &Error, out: &mut Vec<u8>) {
        self.frames.error(failed, out);
        self.events.source = Source::Over;
    }
}

/// About how many bytes the frames of some events have.
fn length(events: &[Arc<LoggedEvent>]) -> usize {
    events.iter().map(|event| event.line.len() + AROUND_EVENT).sum()
}

/// Writes frames of one dialect and binding.
struct Frames {
    dialect: Dialect,
    binding: Binding,
    /// Whether files get a second layer of base64. Such readers are few, so frames with files are written for each of them.
    files_twice: bool,
    /// What stands before and after each result.
    prefix: Vec<u8>,
    suffix: &'static [u8],
}

impl Frames {
    fn new(dialect: Dialect, binding: Binding) -> Self {
        let mut prefix = b"data: ".to_vec();
        let suffix: &[u8] = match &binding {
            Binding::Rpc(id) => {
                jsonrpc::write_result_prefix(id, &mut prefix);
                b"}\n\n"
            }
            Binding::Rest => b"\n\n",
        };
        Self { dialect, binding, files_twice: false, prefix, suffix }
    }

    fn event(&self, event: &LoggedEvent, before: Seq, until: StreamEnd, out: &mut Vec<u8>) -> Result<(), Error> {
        let frame = self.translated(event, until.ends_at(event.kind)).map_err(|error| {
            tracing::error!(%error, seq = event.seq.0, "a stored event cannot be read");
            Error::with_message(ErrorKind::Internal, "a stored event is damaged, run `switchboard db check`")
        })?;
        if event.seq > before.plus(1) {
            // Readers know from this that no event was lost in between. Writing to memory cannot fail.
            let _ = writeln!(out, "after: {}", before.0);
        }
        self.result(Some(event.cursor()), &frame, out);
        Ok(())
    }

    fn translated(&self, event: &LoggedEvent, is_final: bool) -> Result<Bytes, serde_json::Error> {
        if self.files_twice
            && let Some(frame) = rest_files::frame_from_v1(&event.line, is_final)?
        {
            return Ok(frame.into());
        }
        event.frame(self.dialect, is_final)
    }

    fn result(&self, cursor: Option<Cursor>, result: &[u8], out: &mut Vec<u8>) {
        if let Some(cursor) = cursor {
            // Writing to memory cannot fail.
            let _ = writeln!(out, "id: {cursor}");
        }
        out.extend_from_slice(&self.prefix);
        out.extend_from_slice(result);
        out.extend_from_slice(self.suffix);
    }

    /// v0.3 readers know no event types, so there the error comes as plain data.
    fn error(&self, failed: &Error, out: &mut Vec<u8>) {
        if self.dialect == Dialect::V1 {
            out.extend_from_slice(b"event: error\n");
        }
        out.extend_from_slice(b"data: ");
        out.extend_from_slice(&self.binding.encode(self.dialect, failed));
        out.extend_from_slice(b"\n\n");
    }
}
