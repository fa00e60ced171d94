//! The TLS handshake, off the accept loop and with a time limit, so that a client that does not finish it holds one
//! connection slot for a while and delays no other.

use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

use super::activity::Activity;
use super::early_response::{render, send_and_close};
use super::socket::Socket;
use super::tls::Tls;
use super::transport::Layer;
use crate::metric_definitions as metric;

/// Accepts a TLS connection; none if the handshake fails, which is then logged.
pub(super) async fn accept_tls(
    stream: TcpStream,
    tls: &Arc<Tls>,
    limit: Duration,
    activity: &Arc<Activity>,
) -> Option<Layer> {
    let handshake = async {
        let mut first = [0];
        // HTTP begins with a method, and no record of TLS begins with a letter.
        if stream.peek(&mut first).await? > 0 && first[0].is_ascii_alphabetic() {
            return Ok(Err(stream));
        }
        let acceptor = TlsAcceptor::from(tls.current().await);
        acceptor.accept(Socket::new(stream, Arc::clone(activity))).await.map(Ok)
    };
    let failure = match tokio::time::timeout(limit, handshake).await {
        Ok(Ok(Ok(stream))) => return Some(Layer::Right(Box::new(stream))),
        Ok(Ok(Err(plain))) => {
            let message = "this port speaks TLS, and the request came without it: write https:// instead of http://";
            send_and_close(plain, render("400 Bad Request", "", "INVALID_ARGUMENT", message)).await;
            "it began as plain HTTP".to_owned()
        }
        Ok(Err(error)) => error.to_string(),
        Err(_) => "it took longer than the header timeout".to_owned(),
    };
    metrics::counter!(metric::FAILED_HANDSHAKES).increment(1);
    tracing::debug!(%failure, "a connection ended before TLS was agreed on");
    None
}
