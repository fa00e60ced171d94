//! WebSockets that are read only (RFC 6455): the server sends messages, and the client none.
//!
//! The handshake is an HTTP exchange behind the same guards as any other. What is sent then comes from a [`MessageFormat`],
//! which is to a WebSocket what [`crate::FrameFormat`] is to an event stream.

mod session;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::header::{CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL};
use http::header::{SEC_WEBSOCKET_VERSION, UPGRADE};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, Version};
use hyper::upgrade::OnUpgrade;
use switchboard_a2a::Error;
use tokio_util::sync::CancellationToken;

use crate::edge::upgrade::UpgradeSlot;
use crate::{Body, Exchange};
use session::Session;

/// The protocol that a client offers, beside a key if it cannot send headers.
const PROTOCOL: &str = "switchboard";
/// What a key has before it there.
const KEY: &str = "bearer.";
/// RFC 6455 has every server answer with this behind the client's key.
const MAGIC: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
const VERSION: HeaderValue = HeaderValue::from_static("13");

/// Where the messages of a WebSocket come from.
pub trait MessageFormat: Send + 'static {
    /// What is read at once.
    type Events: Send;

    /// Bytes that are about to be copied for this client alone; they are reserved in the response budget first.
    fn unread_bytes(&self) -> usize {
        0
    }

    /// Waits for the next events; none at the end of the source. Dropped and called again while there are none, so it must
    /// not lose any.
    fn next(&mut self, drained: &CancellationToken) -> impl Future<Output = Option<Self::Events>> + Send;

    /// About how many bytes the messages of events have.
    fn message_bytes(&self, events: &Self::Events) -> usize;

    /// The messages of events, each a text.
    fn messages(&mut self, events: Self::Events) -> Vec<String>;
}

/// A request that opens a WebSocket.
pub struct WebSocketRequest {
    accept: HeaderValue,
    has_protocol: bool,
    upgrade: OnUpgrade,
    slot: UpgradeSlot,
}

/// Why a request opens none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoWebSocket {
    /// It does not ask for one.
    #[error("this is a WebSocket: open it over HTTP/1.1 with Upgrade: websocket")]
    NotAsked,
    /// It asks for another version.
    #[error("the version of the WebSocket is none that is spoken here: send Sec-WebSocket-Version: 13")]
    Version,
    /// Its key is not one.
    #[error("Sec-WebSocket-Key is not 16 bytes in base64")]
    Key,
}

impl NoWebSocket {
    /// What the response says beside its status.
    pub fn headers(self, headers: &mut HeaderMap) {
        headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        if self == Self::Version {
            headers.insert(SEC_WEBSOCKET_VERSION, VERSION);
        }
    }
}

impl Exchange {
    /// Reads the handshake of a WebSocket. Nothing is answered yet.
    pub fn websocket(&mut self) -> Result<WebSocketRequest, NoWebSocket> {
        let headers = &self.parts.headers;
        let asks = names(headers, CONNECTION, "upgrade") && names(headers, UPGRADE, "websocket");
        if self.parts.version != Version::HTTP_11 || !asks {
            return Err(NoWebSocket::NotAsked);
        }
        if headers.get(SEC_WEBSOCKET_VERSION) != Some(&VERSION) {
            return Err(NoWebSocket::Version);
        }
        let key = headers.get(SEC_WEBSOCKET_KEY).and_then(|key| key.to_str().ok()).map(str::trim);
        let key = key.filter(|key| BASE64_STANDARD.decode(key).is_ok_and(|bytes| bytes.len() == 16));
        let accept = HeaderValue::try_from(accept(key.ok_or(NoWebSocket::Key)?)).map_err(|_| NoWebSocket::Key)?;
        let has_protocol = protocols(headers).any(|offered| offered == PROTOCOL);
        let extensions = &mut self.parts.extensions;
        let upgrade = extensions.remove::<OnUpgrade>().ok_or(NoWebSocket::NotAsked)?;
        let slot = extensions.remove::<UpgradeSlot>().ok_or(NoWebSocket::NotAsked)?;
        Ok(WebSocketRequest { accept, has_protocol, upgrade, slot })
    }

    /// Opens a WebSocket; with the retryable error if no stream slot is left.
    pub fn open_websocket(
        &mut self,
        request: WebSocketRequest,
        format: impl MessageFormat,
    ) -> Result<Response<Body>, Error> {
        self.take_stream_slot()?;
        let WebSocketRequest { accept, has_protocol, upgrade, slot } = request;
        let stream_slot = self.take_slot();
        let session = Session::new(self.state(), &self.identity, format, stream_slot);
        slot.set(Box::pin(session.run(upgrade)));
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        let headers = response.headers_mut();
        headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(SEC_WEBSOCKET_ACCEPT, accept);
        if has_protocol {
            headers.insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(PROTOCOL));
        }
        Ok(response)
    }
}

/// The key that a handshake offers among its protocols: a page in a browser can send no other headers. It is looked at only
/// where a WebSocket is opened, and only beside our protocol.
pub(crate) fn offered_key(headers: &HeaderMap) -> Option<&str> {
    protocols(headers).any(|offered| offered == PROTOCOL).then_some(())?;
    protocols(headers).find_map(|offered| offered.strip_prefix(KEY)).filter(|key| !key.is_empty())
}

fn protocols(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let values = headers.get_all(SEC_WEBSOCKET_PROTOCOL).into_iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(str::trim)
}

/// Whether a header has a word, among others perhaps.
fn names(headers: &HeaderMap, header: HeaderName, word: &str) -> bool {
    let values = headers.get_all(header).into_iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|value| value.trim().eq_ignore_ascii_case(word))
}

/// What proves to the client that this server has understood it.
fn accept(key: &str) -> String {
    let bytes = [key.as_bytes(), MAGIC].concat();
    let digest = ring::digest::digest(&ring::digest::SHA1_FOR_LEGACY_USE_ONLY, &bytes);
    BASE64_STANDARD.encode(digest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_to_a_handshake_is_that_of_the_standard() {
        assert_eq!(accept("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }

    #[test]
    fn a_key_is_taken_from_protocols_only_beside_ours() {
        let offered = |value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(value));
            offered_key(&headers).map(str::to_owned)
        };
        assert_eq!(offered("switchboard, bearer.abc"), Some("abc".to_owned()));
        assert_eq!(offered("bearer.abc,switchboard"), Some("abc".to_owned()));
        assert_eq!(
            (offered("bearer.abc"), offered("switchboard"), offered("switchboard, bearer.")),
            (None, None, None)
        );
    }
}
