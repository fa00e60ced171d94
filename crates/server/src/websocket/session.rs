//! An open WebSocket: messages as they come, pings, and what ends it: the caller's key, the end of the source, a message of
//! the client, a client that reads nothing.
//!
//! It reads on only when the client has taken what was sent, so a slow client delays nothing but itself.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use tokio::io::AsyncWriteExt;
use tokio::time::Instant;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Bytes, Error, Message};

use super::MessageFormat;
use crate::edge::stream_slots::StreamSlot;
use crate::metric_definitions as metric;
use crate::response_budget::ReservedBytes;
use crate::{CallerIdentity, State};

/// What a client may send, which is control frames: these have at most 125 bytes.
const INCOMING_BYTES: usize = 4 << 10;
/// How long a client has to answer the end of the connection before it is cut.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
/// A client that has left so many pings unanswered is gone.
const UNANSWERED_PINGS: u32 = 2;

type Socket = WebSocketStream<TokioIo<Upgraded>>;

pub(super) struct Session<F> {
    format: F,
    state: Arc<State>,
    identity: Arc<CallerIdentity>,
    _slot: Option<StreamSlot>,
    /// Reserved bytes for what is read next.
    reserved: Option<ReservedBytes>,
    unanswered: u32,
}

/// Why it ends.
enum Ending {
    /// The client is told.
    Close(CloseCode, &'static str),
    /// The client is gone, or does not read.
    Lost,
}

const KEY_ENDED: Ending = Ending::Close(CloseCode::Policy, "the key is revoked or expired");
const STOPPING: Ending = Ending::Close(CloseCode::Away, "the server is stopping");
const READ_ONLY: Ending = Ending::Close(CloseCode::Unsupported, "this takes no messages");

impl<F: MessageFormat> Session<F> {
    pub(super) fn new(state: &Arc<State>, identity: &Arc<CallerIdentity>, format: F, slot: Option<StreamSlot>) -> Self {
        let (state, identity) = (Arc::clone(state), Arc::clone(identity));
        Self { format, state, identity, _slot: slot, reserved: None, unanswered: 0 }
    }

    /// Serves the connection to its end.
    pub(super) async fn run(mut self, upgrade: OnUpgrade) {
        let Ok(upgraded) = upgrade.await else { return };
        let config = WebSocketConfig::default()
            .read_buffer_size(INCOMING_BYTES)
            .max_message_size(Some(INCOMING_BYTES))
            .max_frame_size(Some(INCOMING_BYTES));
        let mut socket = WebSocketStream::from_raw_socket(TokioIo::new(upgraded), Role::Server, Some(config)).await;
        if let Ending::Close(code, reason) = self.serve(&mut socket).await {
            let close = CloseFrame { code, reason: reason.into() };
            // What the client sends is read to its end, or the reason could be lost to it: a socket that is closed with
            // bytes unread is reset.
            let closing = async {
                let _ = socket.close(Some(close)).await;
                let mut rest = socket.into_inner();
                let _ = rest.shutdown().await;
                let _ = tokio::io::copy(&mut rest, &mut tokio::io::sink()).await;
            };
            let _ = tokio::time::timeout(CLOSE_TIMEOUT, closing).await;
        }
    }

    async fn serve(&mut self, socket: &mut Socket) -> Ending {
        let ping = self.state.options.ping;
        let mut quiet_until = Instant::now() + ping;
        loop {
            // What is in memory is shared by all readers, and reserved when it comes.
            if self.reserve(self.format.unread_bytes()).await.is_none() {
                return KEY_ENDED;
            }
            let drained = self.state.engine.drained();
            let events = tokio::select! {
                biased;
                () = self.identity.revoked.cancelled() => return KEY_ENDED,
                message = socket.next() => match received(message) {
                    Some(ending) => return ending,
                    None => {
                        self.unanswered = 0;
                        // The answers to pings gather in memory otherwise, of a client that sends them and reads nothing.
                        match self.flush(socket).await {
                            Some(ending) => return ending,
                            None => continue,
                        }
                    }
                },
                events = self.format.next(drained) => events,
                () = tokio::time::sleep_until(quiet_until) => {
                    self.reserved = None;
                    if self.unanswered >= UNANSWERED_PINGS {
                        return Ending::Lost;
                    }
                    self.unanswered += 1;
                    if let Some(ending) = self.send(socket, Message::Ping(Bytes::new())).await {
                        return ending;
                    }
                    quiet_until = Instant::now() + ping;
                    continue;
                }
            };
            let Some(events) = events else {
                return match self.state.engine.drained().is_cancelled() {
                    true => STOPPING,
                    false => Ending::Close(CloseCode::Error, "the feed cannot be read"),
                };
            };
            if self.reserve(self.format.message_bytes(&events)).await.is_none() {
                return KEY_ENDED;
            }
            for text in self.format.messages(events) {
                if let Some(ending) = self.send(socket, Message::text(text)).await {
                    return ending;
                }
            }
            self.reserved = None;
            quiet_until = Instant::now() + ping;
        }
    }

    /// Sends a message, and waits until the client has taken it; says why it ends if it does.
    async fn send(&mut self, socket: &mut Socket, message: Message) -> Option<Ending> {
        self.written(socket.send(message)).await
    }

    /// The same for what the protocol answers by itself.
    async fn flush(&mut self, socket: &mut Socket) -> Option<Ending> {
        self.written(socket.flush()).await
    }

    async fn written(&mut self, writing: impl Future<Output = Result<(), Error>>) -> Option<Ending> {
        let sending = tokio::time::timeout(self.state.options.write_timeout, writing);
        tokio::select! {
            biased;
            () = self.identity.revoked.cancelled() => Some(KEY_ENDED),
            sent = sending => match sent {
                Ok(Ok(())) => None,
                Ok(Err(_)) => Some(Ending::Lost),
                Err(_) => {
                    tracing::debug!("a websocket is cut, its client took none of a message for the write timeout");
                    metrics::counter!(metric::UNREAD_CONNECTIONS).increment(1);
                    Some(Ending::Lost)
                }
            },
        }
    }

    /// Reserves bytes unless some are reserved; none if the caller's key has ended.
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
}

/// What comes of a client's frame; nothing of those that keep a connection alive.
fn received(message: Option<Result<Message, Error>>) -> Option<Ending> {
    match message {
        Some(Ok(Message::Ping(_) | Message::Pong(_))) => None,
        Some(Ok(Message::Text(_) | Message::Binary(_) | Message::Frame(_))) => Some(READ_ONLY),
        // The answer to it is sent by reading on.
        Some(Ok(Message::Close(_))) => Some(Ending::Close(CloseCode::Normal, "")),
        Some(Err(Error::Capacity(_))) => Some(Ending::Close(CloseCode::Size, "a frame is too large")),
        Some(Err(Error::Protocol(_) | Error::Utf8(_))) => Some(Ending::Close(CloseCode::Protocol, "no frame")),
        Some(Err(_)) | None => Some(Ending::Lost),
    }
}
