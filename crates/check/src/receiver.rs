//! A webhook receiver on loopback, open for as long as one check needs it.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// The largest request that is read.
const MAX_REQUEST_BYTES: usize = 1 << 20;
/// How many requests are kept.
const MAX_KEPT: usize = 8;
/// How long a request may take to arrive.
const READ_TIMEOUT: Duration = Duration::from_secs(2);

/// It reads requests at any time: some agents reply to no client before their webhooks have.
pub(crate) struct Receiver {
    address: SocketAddr,
    bodies: mpsc::Receiver<Value>,
    work: JoinHandle<()>,
}

impl Receiver {
    /// One that responds, or one that accepts connections and never responds.
    pub(crate) async fn start(answers: bool) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let (sender, bodies) = mpsc::channel(MAX_KEPT);
        let work = tokio::spawn(async move {
            let mut unanswered = Vec::new();
            while let Ok((socket, _)) = listener.accept().await {
                if !answers {
                    unanswered.push(socket);
                    continue;
                }
                let respond = service_fn(|request| received(request, sender.clone()));
                let connection =
                    http1::Builder::new().keep_alive(false).serve_connection(TokioIo::new(socket), respond);
                let _ = timeout(READ_TIMEOUT, connection).await;
            }
        });
        Ok(Self { address, bodies, work })
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/a2a-check", self.address)
    }

    /// The body of the next request that has one.
    pub(crate) async fn next(&mut self, patience: Duration) -> Option<Value> {
        timeout(patience, self.bodies.recv()).await.ok().flatten()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.work.abort();
    }
}

async fn received(request: Request<Incoming>, sender: mpsc::Sender<Value>) -> io::Result<Response<Empty<Bytes>>> {
    let body = Limited::new(request.into_body(), MAX_REQUEST_BYTES).collect().await.map_err(io::Error::other)?;
    if let Ok(body) = serde_json::from_slice(&body.to_bytes()) {
        // More than are kept are not read.
        let _ = sender.try_send(body);
    }
    Ok(Response::new(Empty::new()))
}
