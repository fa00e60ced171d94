//! Turns away a connection beyond the cap, with an answer if that costs no more than one small write.

use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;

use super::farewell::{self, Farewell};

/// Connections being told at the same time; further ones are just closed.
pub(super) const AT_ONCE: usize = 64;

/// Says that the server is full, and closes.
pub(super) async fn turn_away(stream: TcpStream, connections: usize, _farewell: OwnedSemaphorePermit) {
    let body = format!(
        "{{\"error\":{{\"code\":503,\"status\":\"UNAVAILABLE\",\"message\":\"{connections} connections are open, as many \
         as limits.connections allows, try again later\"}}}}"
    );
    farewell::say(stream, Farewell { status: "503 Service Unavailable", headers: "retry-after: 1\r\n", body }).await;
}
