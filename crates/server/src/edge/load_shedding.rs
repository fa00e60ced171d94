//! Turns away a connection beyond the cap, with an answer if that costs no more than one small write.

use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;

use super::early_response::{self, EarlyResponse};

/// Connections being told at the same time; further ones are just closed.
pub(super) const CONCURRENT_REJECTIONS: usize = 64;

/// What is said where all connections are taken.
pub(super) fn total_limit_message(connections: usize) -> String {
    format!("{connections} connections are open, as many as limits.connections allows, try again later")
}

/// The same for one address.
pub(super) fn address_limit_message(connections: usize) -> String {
    format!(
        "this address has {connections} connections open, as many as limits.connectionsPerAddress allows, close some first"
    )
}

/// Says why there is no room, and closes.
pub(super) async fn reject(stream: TcpStream, full: String, _slot: OwnedSemaphorePermit) {
    let body = serde_json::json!({ "error": { "code": 503, "status": "UNAVAILABLE", "message": full } }).to_string();
    early_response::send(
        stream,
        EarlyResponse { status: "503 Service Unavailable", headers: "retry-after: 1\r\n", body },
    )
    .await;
}
