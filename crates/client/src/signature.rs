//! Request signatures with a shared secret (HMAC-SHA256). The time is signed against replays, the method and the path
//! against use for another request.
//!
//! The header is `t=<seconds since 1970>,v1=<hexadecimal signature>` over
//! `<seconds>.<method>.<path and query>.<body>`.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use http::Request;
use ring::hmac::{self, HMAC_SHA256};

/// The value of the header.
pub(crate) fn of(secret: &str, request: &Request<Bytes>) -> String {
    sign(secret, request, SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
}

fn sign(secret: &str, request: &Request<Bytes>, since_1970: Duration) -> String {
    let mut context = hmac::Context::with_key(&hmac::Key::new(HMAC_SHA256, secret.as_bytes()));
    let seconds = since_1970.as_secs();
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
    context.update(format!("{seconds}.{}.{path}.", request.method()).as_bytes());
    context.update(request.body());
    let signature: String = context.sign().as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("t={seconds},v1={signature}")
}
