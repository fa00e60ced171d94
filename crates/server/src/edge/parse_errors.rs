//! Parse errors: where the HTTP library cannot read a request it answers by itself, with a bare status. That answer is
//! replaced by one that says what was wrong and which setting it is.

use bytes::Bytes;

use super::early_response;
use crate::Options;

/// Every response of ours has it, and none of the library's.
const OURS: &[u8] = b"x-request-id:";

pub(super) struct ParseErrors {
    malformed: Bytes,
    address_too_long: Bytes,
    headers_too_large: Bytes,
}

impl ParseErrors {
    pub(super) fn new(options: &Options) -> Self {
        let (headers, bytes) = (options.headers, options.request_headers);
        let too_large = format!(
            "the request has more than {headers} headers, the value of limits.headers, or its address and headers have \
             more than {bytes} bytes, the value of limits.requestHeaders"
        );
        Self {
            malformed: answer("400 Bad Request", "INVALID_ARGUMENT", "the request is not HTTP/1.1 as RFC 9112 has it"),
            address_too_long: answer(
                "414 URI Too Long",
                "INVALID_ARGUMENT",
                "the address of the request has more than 65534 bytes",
            ),
            headers_too_large: answer("431 Request Header Fields Too Large", "RESOURCE_EXHAUSTED", &too_large),
        }
    }

    /// What to send instead of a response that the library has made; none if the bytes are no such response.
    pub(super) fn instead_of(&self, bytes: &[u8]) -> Option<Bytes> {
        let status = bytes.strip_prefix(b"HTTP/1.1 ")?.get(..3)?;
        let answer = match status {
            b"400" => &self.malformed,
            b"414" => &self.address_too_long,
            b"431" => &self.headers_too_large,
            _ => return None,
        };
        let is_ours = bytes.windows(OURS.len()).any(|window| window == OURS);
        let is_whole = bytes.ends_with(b"\r\n\r\n");
        (is_whole && !is_ours).then(|| answer.clone())
    }
}

fn answer(status: &str, name: &str, message: &str) -> Bytes {
    Bytes::from(early_response::render(status, "cache-control: no-store\r\n", name, message))
}
