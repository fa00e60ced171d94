//! One line per request: who asked for what, and how it went. Never bodies, keys or query strings.

use std::time::Duration;

use http::{HeaderValue, Method, StatusCode, Uri};

/// What the line will say of a request, kept aside because the request itself is used up. Nothing is kept if nobody
/// listens.
pub(crate) struct AccessLog(Option<(Method, Uri)>);

impl AccessLog {
    pub(crate) fn begin(method: &Method, uri: &Uri) -> Self {
        let listening = tracing::enabled!(target: "switchboard::access", tracing::Level::INFO);
        Self(listening.then(|| (method.clone(), uri.clone())))
    }

    /// The response is ready.
    pub(crate) fn write(self, status: StatusCode, duration: Duration, caller: &str, request_id: &HeaderValue) {
        let Some((method, uri)) = self.0 else { return };
        let path = uri.path();
        let status = status.as_u16();
        let duration_ms = duration.as_micros() as f64 / 1_000.0;
        let request_id = request_id.to_str().unwrap_or_default();
        // Probes come every few seconds and say nothing.
        if crate::health::is_probe(path) {
            tracing::debug!(target: "switchboard::access", %method, path, status, duration_ms, caller, request_id, "request");
        } else {
            tracing::info!(target: "switchboard::access", %method, path, status, duration_ms, caller, request_id, "request");
        }
    }
}
