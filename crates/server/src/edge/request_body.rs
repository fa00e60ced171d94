//! Reads a request's body within its size limit and deadline (slow client protection), and only if it is plain JSON.

use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use futures_util::FutureExt;
use http::header::{CONNECTION, CONTENT_ENCODING, CONTENT_TYPE, EXPECT};
use http::request::Parts;
use http::{HeaderValue, Method, Response, StatusCode, Version};
use http_body_util::BodyExt;
use hyper::body::{Body as _, Incoming};
use switchboard_a2a::{Error, ErrorKind};

use super::activity::Activity;
use crate::state::stopping;
use crate::{Body, Options, State};

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

/// Why a request whose body was not read is refused.
pub(crate) struct RejectedBody {
    pub(crate) error: Error,
    /// Where it is not the status of the error: the body did not come to its end then.
    status: Option<StatusCode>,
    /// What the client has sent, which may hold the request's id.
    pub(crate) sent: Option<Bytes>,
}

impl RejectedBody {
    /// A body that is not to be read on; `read` was read of it.
    fn refused(error: Error, read: Bytes) -> Self {
        Self { error, status: None, sent: Some(read) }
    }

    /// A body that did not come to its end.
    fn incomplete(status: StatusCode, error: Error) -> Self {
        Self { error, status: Some(status), sent: None }
    }

    /// Completes a response that says what is wrong.
    pub(crate) fn finish(&self, parts: &Parts, mut response: Response<Body>) -> Response<Body> {
        if let Some(status) = self.status {
            *response.status_mut() = status;
            // What is left of the body would be taken for the next request.
            if parts.version != Version::HTTP_2 {
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
        }
        response
    }
}

/// The deadline of a body. Time only counts once it has to be waited for.
struct BodyDeadline<'a> {
    options: &'a Options,
    began: Option<Instant>,
}

impl BodyDeadline<'_> {
    /// How long the next piece may take after so many bytes, and whether that is the longest pause.
    fn left(&mut self, received: usize, now: Instant) -> (Duration, bool) {
        let began = *self.began.get_or_insert(now);
        let bought = Duration::from_secs((received / BYTES_PER_SECOND) as u64);
        let whole = self.options.body_timeout.saturating_add(bought);
        let (left, pause) = (whole.saturating_sub(now.saturating_duration_since(began)), self.options.header_timeout);
        (left.min(pause), left >= pause)
    }

    /// The client missed it, with a long pause or without.
    fn missed(&self, is_pause: bool) -> RejectedBody {
        let (message, limit) = if is_pause {
            let pause_ms = self.options.header_timeout.as_millis();
            let message = format!("the request body paused for more than {pause_ms} ms, send it in one go");
            (message, "server.headerTimeout")
        } else {
            let timeout_ms = self.options.body_timeout.as_millis();
            let message =
                format!("the request body was not complete after {timeout_ms} ms and came too slowly to wait");
            (message, "server.bodyTimeout")
        };
        let error = Error::with_message(ErrorKind::RequestTimeout, message).detail("limit", limit);
        RejectedBody::incomplete(StatusCode::REQUEST_TIMEOUT, error)
    }
}

/// Reads a whole body.
pub(crate) async fn read(
    state: &State,
    activity: &Activity,
    parts: &Parts,
    mut body: Incoming,
) -> Result<Bytes, Box<RejectedBody>> {
    let read = tokio::select! {
        biased;
        read = read_within(&state.options, parts, &mut body) => read,
        () = state.engine.drained().cancelled() => {
            Err(RejectedBody::incomplete(StatusCode::SERVICE_UNAVAILABLE, stopping()))
        }
    };
    match read {
        Ok(bytes) => {
            activity.body_is_read();
            Ok(bytes)
        }
        Err(mut rejected) => {
            if let Some(read) = rejected.sent.take() {
                rejected.sent = drain_refused(state, activity, parts, read, &mut body).await;
            }
            Err(Box::new(rejected))
        }
    }
}

async fn read_within(options: &Options, parts: &Parts, body: &mut Incoming) -> Result<Bytes, RejectedBody> {
    let Parts { method, headers, .. } = parts;
    let limit = options.request_body;
    let mut deadline = BodyDeadline { options, began: None };
    if body.is_end_stream() {
        return Ok(Bytes::new());
    }
    if body.size_hint().lower() > limit as u64 {
        return Err(too_large(limit));
    }
    if let Some(encoding) = headers.get(CONTENT_ENCODING).filter(|encoding| *encoding != "identity") {
        return Err(encoded(encoding));
    }
    let declared_empty = body.size_hint().exact() == Some(0);
    let has_type = declared_empty || headers.get(CONTENT_TYPE).is_some_and(is_json);
    let Some(first) = next_piece(body, &mut deadline, 0).await? else {
        return Ok(Bytes::new());
    };
    // A chunked body may have turned out to be empty, and an empty one needs no media type.
    if matches!(*method, Method::POST | Method::PUT | Method::PATCH) && !has_type {
        return Err(RejectedBody::refused(no_json(headers.get(CONTENT_TYPE)), first));
    }
    if first.len() > limit {
        return Err(too_large(limit));
    }
    if body.is_end_stream() {
        return Ok(first);
    }
    // A declared length is a promise to be checked, not a reason to reserve memory up front.
    let mut whole = BytesMut::from(first);
    while let Some(piece) = next_piece(body, &mut deadline, whole.len()).await? {
        if whole.len() + piece.len() > limit {
            return Err(too_large(limit));
        }
        whole.extend_from_slice(&piece);
    }
    Ok(whole.freeze())
}

/// Reads what a refused client still sends. A small body is returned, because the error can name its request then; a
/// large one is discarded. The rest is discarded by the lingering close, after the response.
pub(crate) async fn drain_refused(
    state: &State,
    activity: &Activity,
    parts: &Parts,
    already_read: Bytes,
    body: &mut Incoming,
) -> Option<Bytes> {
    if body.is_end_stream() {
        return Some(already_read);
    }
    let limit = state.options.request_body;
    let linger = || activity.linger(limit.saturating_mul(LINGER_BODIES).max(LINGER));
    // A client that waits for `100 Continue` has sent nothing and must not be told to. One that is going to send too much
    // may stop as soon as it has the response.
    if parts.headers.contains_key(EXPECT) || body.size_hint().lower() > limit as u64 {
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

/// The next data that is not empty. A timer is only set if it is not there yet.
async fn next_piece(
    body: &mut Incoming,
    deadline: &mut BodyDeadline<'_>,
    received: usize,
) -> Result<Option<Bytes>, RejectedBody> {
    loop {
        let frame = match body.frame().now_or_never() {
            Some(frame) => frame,
            None => {
                let (left, is_pause) = deadline.left(received, Instant::now());
                tokio::time::timeout(left, body.frame()).await.map_err(|_| deadline.missed(is_pause))?
            }
        };
        let Some(frame) = frame else { return Ok(None) };
        let frame = frame.map_err(|_| {
            let message = "the request body ended early or is not framed as its headers say";
            RejectedBody::incomplete(StatusCode::BAD_REQUEST, Error::with_message(ErrorKind::InvalidRequest, message))
        })?;
        // Trailers are of no use here.
        if let Ok(data) = frame.into_data()
            && !data.is_empty()
        {
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

fn too_large(limit: usize) -> RejectedBody {
    let message = format!("the request body is larger than {limit} bytes, the value of limits.requestBody");
    let error = Error::with_message(ErrorKind::TooLarge, message);
    let error = error.detail("limit", "limits.requestBody").detail("maxBytes", limit);
    RejectedBody::refused(error, Bytes::new())
}

fn encoded(encoding: &HeaderValue) -> RejectedBody {
    let encoding = String::from_utf8_lossy(encoding.as_bytes()).into_owned();
    let message = format!("content-encoding {encoding:?} is not supported, send the body as it is");
    let error = Error::with_message(ErrorKind::ContentTypeNotSupported, message).detail("contentEncoding", encoding);
    RejectedBody::refused(error, Bytes::new())
}

fn no_json(media_type: Option<&HeaderValue>) -> Error {
    let media_type = media_type.map(|media_type| String::from_utf8_lossy(media_type.as_bytes()).into_owned());
    let said = media_type.unwrap_or_default();
    let message = format!("content-type {said:?} is not supported, send application/json or application/a2a+json");
    Error::with_message(ErrorKind::ContentTypeNotSupported, message).detail("contentType", said)
}
