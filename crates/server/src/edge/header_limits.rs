//! How many headers a request may have, and how large they may be. The HTTP library lets somewhat more pass than is
//! allowed, so that whoever sends too much is told which setting it is.

use http::request::Parts;
use switchboard_a2a::{Error, ErrorKind};

use crate::Options;

/// What the HTTP library lets pass, as a multiple of the limit. Beyond that it answers by itself, and `parse_errors` says
/// which settings there are.
pub(super) const LET_PASS: usize = 2;

/// The same for the bytes of headers over HTTP/2, where the answer of the library cannot be replaced. It packs headers and
/// refuses one request rather than the connection, so this is what a client gets to hear the reason up to.
pub(super) const LET_PASS_HTTP2: usize = 16;

/// What stands around a header on the wire: a colon, a space and the end of the line.
const AROUND: usize = 4;

/// Refuses a head beyond the limits.
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
