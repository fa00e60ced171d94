//! Load shedding: a connection beyond the limits is closed with a 503 response, if that costs no more than one small
//! write.

use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;

use super::early_response::{render, send_and_close};

/// Connections that get a 503 at the same time; further ones are just closed.
pub(super) const CONCURRENT_REJECTIONS: usize = 64;

pub(super) fn total_limit_message(connections: usize) -> String {
    format!("{connections} connections are open, as many as limits.connections allows, try again later")
}

pub(super) fn address_limit_message(connections: usize) -> String {
    format!(
        "this address has {connections} connections open, as many as limits.connectionsPerAddress allows, close some first"
    )
}

/// Responds with 503 and closes.
pub(super) async fn reject(stream: TcpStream, message: String, _slot: OwnedSemaphorePermit) {
    let response = render("503 Service Unavailable", "retry-after: 1\r\n", "UNAVAILABLE", &message);
    send_and_close(stream, response).await;
}
