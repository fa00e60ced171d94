//! Header limits: how many headers a request may have, and how large they may be. The HTTP library lets somewhat more pass
//! than is allowed, so that the error can name the setting.

use http::request::Parts;
use switchboard_a2a::{Error, ErrorKind};

use crate::Options;

/// What the HTTP library lets pass, as a multiple of the limit. Beyond that it answers by itself, see `ParseErrors`.
pub(super) const LET_PASS: usize = 2;

/// The same for the bytes of headers over HTTP/2, where the answer of the library cannot be replaced; up to here the
/// client gets the reason. HTTP/2 refuses one request rather than the connection, so more is safe.
pub(super) const LET_PASS_HTTP2: usize = 16;

/// Bytes around a header on the wire: a colon, a space and the end of the line.
const AROUND: usize = 4;

pub(super) fn check(parts: &Parts, options: &Options) -> Result<(), Error> {
    let count = parts.headers.len();
    if count > options.headers {
        let limit = options.headers;
        let message = format!("the request has {count} headers, and {limit} is the value of limits.headers");
        return Err(too_large(message, "limits.headers").detail("maxHeaders", limit));
    }
    let target = parts.uri.path_and_query().map_or(0, |target| target.as_str().len());
    let fields = parts.headers.iter().map(|(name, value)| name.as_str().len() + value.len() + AROUND);
    let bytes = target + fields.sum::<usize>();
    if bytes > options.request_headers {
        let limit = options.request_headers;
        let message = format!(
            "the request's address and headers have {bytes} bytes, and {limit} is the value of limits.requestHeaders"
        );
        return Err(too_large(message, "limits.requestHeaders").detail("maxBytes", limit));
    }
    Ok(())
}

fn too_large(message: String, limit: &str) -> Error {
    Error::with_message(ErrorKind::HeadersTooLarge, message).detail("limit", limit)
}
