//! Event streams (SSE), whatever their frames look like: keep-alives, the end of the caller's key, graceful shutdown, and
//! the response budget.
//!
//! A stream reads on only when the client has taken what was sent, so a slow client delays nothing but itself.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::stream::{self, StreamExt};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::body::StreamChunk;
use crate::edge::stream_slots::StreamSlot;
use crate::response_budget::ReservedBytes;
use crate::{Body, CallerIdentity, State};

/// Sent at graceful shutdown: reconnect in a second.
const RECONNECT: &[u8] = b"retry: 1000\n\n";
/// The SSE keep-alive, which keeps proxies and readers from timing out.
const PING: Bytes = Bytes::from_static(b": ping\n\n");

/// Where the events of a stream come from, and how they are written as frames.
pub trait FrameFormat: Send + 'static {
    /// What is read at once.
    type Events: Send;

    /// Bytes that are about to be copied for this stream alone; they are reserved in the response budget first. Zero for
    /// what is shared by all streams, or not known yet.
    fn unread_bytes(&self) -> usize {
        0
    }

    /// Writes frames that wait for no event, such as the first one of a task. Never dropped before its end, unlike
    /// [`FrameFormat::next`].
    fn write_ready(&mut self, _out: &mut Vec<u8>) -> impl Future<Output = StreamFlow> + Send {
        std::future::ready(StreamFlow::Continue)
    }

    /// Waits for the next events; none at the end of the source, or when the kernel has drained and nothing is left to be
    /// sent. Dropped and called again while there are none, so it must not lose any.
    fn next(&mut self, drained: &CancellationToken) -> impl Future<Output = Option<Self::Events>> + Send;

    /// About how many bytes the frames of events have.
    fn frame_bytes(&self, events: &Self::Events) -> usize;

    /// Writes the frames of events.
    fn write(&mut self, events: Self::Events, out: &mut Vec<u8>) -> StreamFlow;
}

/// Whether a stream goes on after what was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamFlow {
    /// It does.
    Continue,
    /// That was its last frame.
    End,
}

/// The body of an event stream. Its slot is given back at its end; `reserved` are bytes of what is sent first, where that
/// is known to be large.
pub(crate) fn body<F: FrameFormat>(
    state: &Arc<State>,
    identity: &Arc<CallerIdentity>,
    format: F,
    slot: Option<StreamSlot>,
    reserved: Option<ReservedBytes>,
) -> Body {
    let events = EventStream {
        format,
        state: Arc::clone(state),
        identity: Arc::clone(identity),
        _slot: slot,
        reserved,
        is_over: false,
        quiet_until: Instant::now() + state.options.ping,
    };
    let mut chunks = Box::pin(stream::unfold(events, |mut events| async move {
        let chunk = events.next().await?;
        events.quiet_until = Instant::now() + events.state.options.ping;
        Some((chunk, events))
    }));
    // A chunk that is ready is written with the head of the response, and with the end if nothing comes after it. It has no
    // length even then: to a client, a stream with a length looks like one that a proxy has held back.
    match chunks.next().now_or_never() {
        Some(None) => Body::empty(),
        first => Body::stream(first.flatten(), chunks),
    }
}

struct EventStream<F> {
    format: F,
    state: Arc<State>,
    identity: Arc<CallerIdentity>,
    _slot: Option<StreamSlot>,
    /// Reserved bytes for what is sent next.
    reserved: Option<ReservedBytes>,
    is_over: bool,
    quiet_until: Instant,
}

impl<F: FrameFormat> EventStream<F> {
    /// All frames that are ready, in one buffer.
    async fn next(&mut self) -> Option<StreamChunk> {
        while !self.is_over {
            // What is in memory is shared by all streams, and reserved when it comes.
            self.reserve(self.format.unread_bytes()).await?;
            let mut bytes = Vec::new();
            self.is_over = self.format.write_ready(&mut bytes).await == StreamFlow::End;
            if !bytes.is_empty() {
                return Some(self.chunk(bytes));
            }
            if self.is_over {
                break;
            }
            let drained = self.state.engine.drained();
            let events = tokio::select! {
                biased;
                () = self.identity.revoked.cancelled() => return None,
                events = self.format.next(drained) => events,
                () = tokio::time::sleep_until(self.quiet_until) => {
                    // What was read was not for this stream, and the next event may take hours.
                    self.reserved = None;
                    return Some(StreamChunk { bytes: PING, reserved: None });
                }
            };
            self.reserve(events.as_ref().map_or(0, |events| self.format.frame_bytes(events))).await?;
            self.is_over = match events {
                Some(events) => self.format.write(events, &mut bytes) == StreamFlow::End,
                // During graceful shutdown tasks may still end, so a stream goes on until the kernel has drained.
                None if self.state.engine.drained().is_cancelled() => {
                    bytes.extend_from_slice(RECONNECT);
                    true
                }
                None => true,
            };
            if !bytes.is_empty() {
                return Some(self.chunk(bytes));
            }
        }
        None
    }

    /// Reserves bytes unless some are reserved; none if the stream has to end instead.
    async fn reserve(&mut self, bytes: usize) -> Option<()> {
        if bytes == 0 || self.reserved.is_some() {
            return Some(());
        }
        let responses = &self.state.responses;
        let reserved = match responses.try_reserve(&self.identity, bytes) {
            Some(reserved) => reserved,
            None => tokio::select! {
                biased;
                () = self.identity.revoked.cancelled() => return None,
                reserved = Box::pin(responses.reserve(&self.identity, bytes)) => reserved,
                // The kernel has stopped, and the source will not go on.
                () = self.state.engine.drained().cancelled() => responses.force(&self.identity, bytes),
            },
        };
        self.reserved = Some(reserved);
        Some(())
    }

    fn chunk(&mut self, bytes: Vec<u8>) -> StreamChunk {
        let mut reserved = self.reserved.take();
        if let Some(reserved) = &mut reserved {
            reserved.resize(bytes.len());
        }
        StreamChunk { bytes: bytes.into(), reserved }
    }
}
