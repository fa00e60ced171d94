//! Turns away a connection beyond the cap, with an answer if that costs no more than one small write.

use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;

use super::farewell::{self, Farewell};

/// Connections being told at the same time; further ones are just closed.
pub(super) const AT_ONCE: usize = 64;

/// What is said where all connections are taken.
pub(super) fn of_all(connections: usize) -> String {
    format!("{connections} connections are open, as many as limits.connections allows, try again later")
}

/// The same for one address.
pub(super) fn of_address(connections: usize) -> String {
    format!(
        "this address has {connections} connections open, as many as limits.connectionsPerAddress allows, close some first"
    )
}

/// Says why there is no room, and closes.
pub(super) async fn turn_away(stream: TcpStream, full: String, _farewell: OwnedSemaphorePermit) {
    let body = serde_json::json!({ "error": { "code": 503, "status": "UNAVAILABLE", "message": full } }).to_string();
    farewell::say(stream, Farewell { status: "503 Service Unavailable", headers: "retry-after: 1\r\n", body }).await;
}
