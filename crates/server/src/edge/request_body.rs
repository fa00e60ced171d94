//! Reads a request's body within its size limit and deadline (slow client protection), and only if it is plain JSON.

use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use futures_util::FutureExt;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, EXPECT};
use http::{HeaderMap, HeaderValue, Method};
use http_body_util::BodyExt;
use hyper::body::{Body as _, Incoming};
use switchboard_a2a::{Error, ErrorKind};

use super::activity::Activity;

/// How long a refused client may go on sending before the response. Closing at once would often destroy the response on its
/// way.
const DRAIN_TIME: Duration = Duration::from_secs(2);

/// What a lingering close discards at least, and as a multiple of the largest body. A client that sends far more does not
/// read its response.
const LINGER: usize = 32 << 20;
const LINGER_BODIES: usize = 4;

/// What is kept of a refused request; enough for any JSON-RPC envelope.
const KEPT: usize = 64 << 10;

/// The slowest useful transfer rate: so many bytes extend the deadline by a second.
const BYTES_PER_SECOND: usize = 32 << 10;

/// The deadline of a body. Time only counts once it has to be waited for.
pub(crate) struct BodyDeadline {
    pause: Duration,
    /// The time for the whole body, before extensions.
    whole: Duration,
    began: Option<Instant>,
}

impl BodyDeadline {
    pub(crate) fn new(pause: Duration, whole: Duration) -> Self {
        Self { pause, whole, began: None }
    }

    /// How long the next piece may take after so many bytes, and the error if it does not come.
    fn left(&mut self, received: usize, now: Instant) -> (Duration, BodyError) {
        let began = *self.began.get_or_insert(now);
        let bought = Duration::from_secs((received / BYTES_PER_SECOND) as u64);
        let left = self.whole.saturating_add(bought).saturating_sub(now.saturating_duration_since(began));
        if left < self.pause { (left, BodyError::TooSlow) } else { (self.pause, BodyError::Paused) }
    }
}

/// Why a body was not read.
#[derive(Debug)]
pub(crate) enum BodyError {
    /// What is wrong, and what was already read, which may hold the request's id.
    Refused(Error, Bytes),
    Paused,
    /// The client missed the deadline without a long pause.
    TooSlow,
    /// The client is gone, or what it sent is not HTTP.
    Broken,
    /// The server has stopped in the meantime.
    Stopping,
}

pub(crate) async fn read(
    method: &Method,
    headers: &HeaderMap,
    body: &mut Incoming,
    limit: usize,
    mut deadline: BodyDeadline,
) -> Result<Bytes, BodyError> {
    if body.is_end_stream() {
        return Ok(Bytes::new());
    }
    if body.size_hint().lower() > limit as u64 {
        return Err(refusal(too_large(limit)));
    }
    if let Some(encoding) = headers.get(CONTENT_ENCODING).filter(|encoding| *encoding != "identity") {
        return Err(refusal(encoded(encoding)));
    }
    let declared_empty = body.size_hint().exact() == Some(0);
    if method == Method::POST && !declared_empty && !headers.get(CONTENT_TYPE).is_some_and(is_json) {
        // A chunked body may still turn out to be empty, and an empty one needs no media type.
        let Some(piece) = next_piece(body, &mut deadline, 0).await? else {
            return Ok(Bytes::new());
        };
        return Err(BodyError::Refused(no_json(headers.get(CONTENT_TYPE)), piece));
    }
    let Some(first) = next_piece(body, &mut deadline, 0).await? else {
        return Ok(Bytes::new());
    };
    if first.len() > limit {
        return Err(refusal(too_large(limit)));
    }
    if body.is_end_stream() {
        return Ok(first);
    }
    // A declared length is a promise to be checked, not a reason to reserve memory up front.
    let mut whole = BytesMut::from(first);
    while let Some(piece) = next_piece(body, &mut deadline, whole.len()).await? {
        if whole.len() + piece.len() > limit {
            return Err(refusal(too_large(limit)));
        }
        whole.extend_from_slice(&piece);
    }
    Ok(whole.freeze())
}

/// Reads what a refused client still sends. A small body is returned, because the error can name its request then; a
/// large one is discarded. The rest is discarded by the lingering close, after the response.
pub(crate) async fn drain_refused(
    activity: &Activity,
    headers: &HeaderMap,
    already_read: Bytes,
    body: &mut Incoming,
    limit: usize,
) -> Option<Bytes> {
    if body.is_end_stream() {
        return Some(already_read);
    }
    let linger = || activity.linger(limit.saturating_mul(LINGER_BODIES).max(LINGER));
    // A client that waits for `100 Continue` has sent nothing and must not be told to. One that is going to send too much
    // may stop as soon as it has the response.
    if headers.contains_key(EXPECT) || body.size_hint().lower() > limit as u64 {
        linger();
        return None;
    }
    let mut left = limit.max(1 << 20);
    let mut kept = Some(BytesMut::from(already_read));
    let rest = async {
        while let Some(frame) = body.frame().await {
            let Some(data) = frame.ok()?.into_data().ok() else {
                continue;
            };
            left = left.checked_sub(data.len())?;
            kept = kept.take().filter(|kept| kept.len() + data.len() <= KEPT);
            if let Some(kept) = &mut kept {
                kept.extend_from_slice(&data);
            }
        }
        Some(())
    };
    // The response goes out now in any case.
    if tokio::time::timeout(DRAIN_TIME, rest).await.ok().flatten().is_none() {
        linger();
        return None;
    }
    kept.map(BytesMut::freeze)
}

fn refusal(error: Error) -> BodyError {
    BodyError::Refused(error, Bytes::new())
}

/// The next data that is not empty. A timer is only set if it is not there yet.
async fn next_piece(
    body: &mut Incoming,
    deadline: &mut BodyDeadline,
    received: usize,
) -> Result<Option<Bytes>, BodyError> {
    loop {
        let frame = match body.frame().now_or_never() {
            Some(frame) => frame,
            None => {
                let (left, late) = deadline.left(received, Instant::now());
                tokio::time::timeout(left, body.frame()).await.map_err(|_| late)?
            }
        };
        let Some(frame) = frame else { return Ok(None) };
        // Trailers are of no use here.
        let Ok(data) = frame.map_err(|_| BodyError::Broken)?.into_data() else {
            continue;
        };
        if !data.is_empty() {
            return Ok(Some(data));
        }
    }
}

/// `application/json`, `application/a2a+json` and whatever else is JSON by its suffix; parameters do not matter.
fn is_json(media_type: &HeaderValue) -> bool {
    let bytes = media_type.as_bytes();
    let end = bytes.iter().position(|byte| *byte == b';').unwrap_or(bytes.len());
    let essence = bytes[..end].trim_ascii();
    let has_suffix = essence.len() > 5 && essence[essence.len() - 5..].eq_ignore_ascii_case(b"+json");
    essence.eq_ignore_ascii_case(b"application/json") || (has_suffix && essence.contains(&b'/'))
}

fn too_large(limit: usize) -> Error {
    let message = format!("the request body is larger than {limit} bytes, the value of limits.requestBody");
    Error::with_message(ErrorKind::TooLarge, message).detail("limit", "limits.requestBody").detail("maxBytes", limit)
}

fn encoded(encoding: &HeaderValue) -> Error {
    let encoding = String::from_utf8_lossy(encoding.as_bytes()).into_owned();
    let message = format!("content-encoding {encoding:?} is not supported, send the body as it is");
    Error::with_message(ErrorKind::ContentTypeNotSupported, message).detail("contentEncoding", encoding)
}

fn no_json(media_type: Option<&HeaderValue>) -> Error {
    let media_type = media_type.map(|media_type| String::from_utf8_lossy(media_type.as_bytes()).into_owned());
    let said = media_type.unwrap_or_default();
    let message = format!("content-type {said:?} is not supported, send application/json or application/a2a+json");
    Error::with_message(ErrorKind::ContentTypeNotSupported, message).detail("contentType", said)
}
