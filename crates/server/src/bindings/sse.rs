//! A2A event streams: a subscription to a task's log, written as frames of one dialect and binding.
//!
//! The stored line of an event is its v1.0 frame, so v1.0 readers get it as it is; for v0.3 it is translated once and
//! shared by all readers.

use std::io::Write;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use http::Response;
use switchboard_a2a::{Dialect, Error, ErrorKind, Message, Task, encode, jsonrpc, rest_files};
use switchboard_engine::{Cursor, Error as Refusal, LogStream, LoggedEvent, SendStream, Seq, StreamEnd, Subscription};
use tokio_util::sync::CancellationToken;

use super::error::from_engine;
use super::response::{self, Binding};
use super::{render, task};
use crate::edge::stream_slots::StreamSlot;
use crate::event_stream::{self, FrameFormat, StreamFlow};
use crate::response_budget::{ReservedBytes, SMALL};
use crate::{Body, CallerIdentity, State};

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
    pub(super) slot: StreamSlot,
    /// Reserved bytes for the first frame, where it is large.
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
    let Events { source, until, history_length, files_twice, slot, reserved } = events;
    let format = A2aFormat {
        frames: Frames { files_twice, ..Frames::new(dialect, binding) },
        source,
        until,
        history_length,
        state: Arc::clone(state),
        identity: Arc::clone(identity),
    };
    response::events(dialect.version(), event_stream::body(state, identity, format, Some(slot), reserved))
}

/// A stream that is nothing but one error, for readers that take no other media type.
pub(super) fn failure(dialect: Dialect, binding: Binding, failed: &Error) -> Response<Body> {
    let mut bytes = Vec::with_capacity(256);
    Frames::new(dialect, binding).error(failed, &mut bytes);
    response::events(dialect.version(), Body::full(bytes))
}

/// The events of a task, or a direct reply, as A2A frames.
struct A2aFormat {
    frames: Frames,
    source: Source,
    until: StreamEnd,
    history_length: Option<u32>,
    state: Arc<State>,
    identity: Arc<CallerIdentity>,
}

/// The next events of a log; none with the agent's choice between a task and a message.
type NextEvents = Result<Vec<Arc<LoggedEvent>>, Refusal>;

impl FrameFormat for A2aFormat {
    type Events = NextEvents;

    /// The first frame, or events that are no longer in memory.
    fn unread_bytes(&self) -> usize {
        match &self.source {
            Source::Task { first: Some(_), stream, .. } => usize::try_from(stream.task_bytes()).unwrap_or(usize::MAX),
            Source::Task { stream, .. } => stream.unread_bytes(),
            Source::Undecided(_) | Source::Message(_) => 0,
        }
    }

    /// The first frame, and the events that are ready with it.
    async fn write_ready(&mut self, out: &mut Vec<u8>) -> StreamFlow {
        let dialect = self.frames.dialect;
        match &mut self.source {
            Source::Message(message) => {
                if self.frames.files_twice {
                    rest_files::add_layer(&mut **message);
                }
                self.frames.result(None, &encode::encode_send_message(dialect, message), out);
                return StreamFlow::End;
            }
            Source::Task { first, stream, .. } => {
                let Some(first) = first.take() else { return StreamFlow::Continue };
                let (cursor, mut snapshot) = *first;
                task::trim(&mut snapshot, self.history_length);
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
                    Ok(encoded) => self.frames.result(Some(cursor), &encoded, out),
                    Err(failed) => {
                        self.frames.error(&failed, out);
                        return StreamFlow::End;
                    }
                }
            }
            Source::Undecided(_) => return StreamFlow::Continue,
        }
        match self.source.next_events().now_or_never().flatten() {
            Some(events) => self.write(events, out),
            None => StreamFlow::Continue,
        }
    }

    /// The log and the agent's choice end with the kernel themselves.
    async fn next(&mut self, drained: &CancellationToken) -> Option<NextEvents> {
        let events = self.source.next_events().await;
        // A store that is closed is no error to tell.
        events.filter(|events| events.is_ok() || !drained.is_cancelled())
    }

    fn frame_bytes(&self, events: &NextEvents) -> usize {
        events.as_ref().map_or(0, |events| length(events))
    }

    fn write(&mut self, events: NextEvents, out: &mut Vec<u8>) -> StreamFlow {
        let events = match events {
            Ok(events) => events,
            Err(refusal) => {
                self.frames.error(&from_engine(refusal), out);
                return StreamFlow::End;
            }
        };
        out.reserve(length(&events));
        let mut flow = StreamFlow::Continue;
        for event in &events {
            let before = self.source.advance(event.seq);
            if let Err(failed) = self.frames.event(event, before, self.until, out) {
                self.frames.error(&failed, out);
                return StreamFlow::End;
            }
            if self.until.ends_at(event.kind) {
                flow = StreamFlow::End;
            }
        }
        flow
    }
}

impl Source {
    /// Waits for the next events, or for the agent's choice, which comes without any; none at the end of the log.
    async fn next_events(&mut self) -> Option<NextEvents> {
        match self {
            Self::Undecided(decision) => {
                *self = Self::from(decision.await);
                Some(Ok(Vec::new()))
            }
            Self::Task { stream, .. } => stream.next().await.transpose(),
            Self::Message(_) => None,
        }
    }

    /// Advances to an event; returns the number that was sent before it.
    fn advance(&mut self, seq: Seq) -> Seq {
        match self {
            Self::Task { last_sent, .. } => std::mem::replace(last_sent, seq),
            Self::Undecided(_) | Self::Message(_) => seq,
        }
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
