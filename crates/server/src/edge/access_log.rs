//! The access log: one line per request, never with bodies, keys or query strings.

use std::borrow::Cow;
use std::net::IpAddr;
use std::time::Duration;

use http::{HeaderValue, Method, StatusCode, Uri};

/// The longest path that is logged; a client can send one as long as the headers may be.
const LONGEST_PATH: usize = 256;

/// What the line needs of a request, kept because the request itself is used up. Nothing is kept if the log is off.
pub(crate) struct AccessLog(Option<(Method, Uri, IpAddr)>);

impl AccessLog {
    pub(crate) fn begin(method: &Method, uri: &Uri, client: IpAddr) -> Self {
        let listening = tracing::enabled!(target: "switchboard::access", tracing::Level::INFO);
        Self(listening.then(|| (method.clone(), uri.clone(), client)))
    }

    pub(crate) fn write(self, status: StatusCode, duration: Duration, caller: &str, request_id: &HeaderValue) {
        let Some((method, uri, client)) = self.0 else { return };
        let path = &*shortened(uri.path());
        let status = status.as_u16();
        let duration_ms = duration.as_micros() as f64 / 1_000.0;
        let request_id = request_id.to_str().unwrap_or_default();
        // Probes come every few seconds and say nothing.
        if crate::health::is_probe(path) {
            tracing::debug!(target: "switchboard::access", %method, path, status, duration_ms, caller, %client, request_id, "request");
        } else {
            tracing::info!(target: "switchboard::access", %method, path, status, duration_ms, caller, %client, request_id, "request");
        }
    }
}

fn shortened(path: &str) -> Cow<'_, str> {
    if path.len() <= LONGEST_PATH {
        return Cow::Borrowed(path);
    }
    Cow::Owned(format!("{}…", &path[..path.floor_char_boundary(LONGEST_PATH)]))
}
