//! The TLS handshake, off the accept loop and with a time limit, so that a client that does not finish it holds one
//! connection slot for a while and delays no other.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

use super::activity::Activity;
use super::early_response::{render, send_and_close};
use super::socket::Socket;
use super::tls::Tls;
use super::transport::Transport;
use crate::metric_definitions as metric;

/// Accepts a TLS connection; none if the handshake fails, which is then logged.
pub(super) async fn accept_tls(
    stream: TcpStream,
    tls: &Arc<Tls>,
    limit: Duration,
    activity: &Arc<Activity>,
) -> Option<Transport> {
    let failure = match tokio::time::timeout(limit, begin(stream, tls, activity)).await {
        Ok(Ok(Beginning::Tls(transport))) => return Some(transport),
        Ok(Ok(Beginning::Plain(stream))) => {
            reject_plain_http(stream).await;
            "it began as plain HTTP".to_owned()
        }
        Ok(Err(error)) => error.to_string(),
        Err(_) => "it took longer than the header timeout".to_owned(),
    };
    metrics::counter!(metric::FAILED_HANDSHAKES).increment(1);
    tracing::debug!(%failure, "a connection ended before TLS was agreed on");
    None
}

enum Beginning {
    Tls(Transport),
    /// The client wrote http:// instead of https://.
    Plain(TcpStream),
}

async fn begin(stream: TcpStream, tls: &Arc<Tls>, activity: &Arc<Activity>) -> io::Result<Beginning> {
    let mut first = [0];
    if stream.peek(&mut first).await? > 0 && is_http(first[0]) {
        return Ok(Beginning::Plain(stream));
    }
    let acceptor = TlsAcceptor::from(tls.current().await);
    let stream = acceptor.accept(Socket::new(stream, Arc::clone(activity))).await?;
    Ok(Beginning::Tls(Transport::tls(stream, Arc::clone(activity))))
}

/// HTTP begins with a method, and no record of TLS begins with a letter.
fn is_http(first: u8) -> bool {
    first.is_ascii_alphabetic()
}

async fn reject_plain_http(stream: TcpStream) {
    let message = "this port speaks TLS, and the request came without it: write https:// instead of http://";
    send_and_close(stream, render("400 Bad Request", "", "INVALID_ARGUMENT", message)).await;
}
