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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_a_request_does_is_signed() {
        let at = Duration::from_secs(1_700_000_000);
        let signed = |method: &str, url: &str, body: &'static str| {
            let request = Request::builder().method(method).uri(url).body(Bytes::from(body)).unwrap();
            sign("it's a secret", &request, at)
        };
        let url = "https://agent.example/a2a?x=1";
        // Computed with another program.
        let expected = "t=1700000000,v1=eb2ab8f5ff4dbcee6a285c828229604be7c3e2f650c27222ab17cf3d2ebcbdaa";
        assert_eq!(signed("POST", url, r#"{"a":1}"#), expected);
        assert_ne!(signed("PUT", url, r#"{"a":1}"#), expected);
        assert_ne!(signed("POST", "https://agent.example/a2a?x=2", r#"{"a":1}"#), expected);
        assert_ne!(signed("POST", url, r#"{"a":2}"#), expected);
        let later = Request::post(url).body(Bytes::from_static(br#"{"a":1}"#)).unwrap();
        assert_ne!(sign("it's a secret", &later, at + Duration::from_secs(1)), expected);
        assert_ne!(sign("another", &later, at), expected);
    }
}
