//! A webhook receiver: a small HTTP server that keeps what it gets and answers as a test wants.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::mpsc;

/// A wait this long is a failure, not slowness.
const PATIENCE: Duration = Duration::from_secs(90);

/// A receiver.
pub(crate) struct Receiver {
    address: SocketAddr,
    status: Arc<AtomicU16>,
    notifications: mpsc::UnboundedReceiver<Notification>,
}

/// What it got.
#[derive(Debug)]
pub(crate) struct Notification {
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Receiver {
    /// One that takes everything.
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let status = Arc::new(AtomicU16::new(200));
        let (sender, notifications) = mpsc::unbounded_channel();
        let answer = status.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (sender, answer) = (sender.clone(), answer.clone());
                let service = service_fn(move |request| take(request, sender.clone(), answer.clone()));
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
            }
        });
        Self { address, status, notifications }
    }

    /// Its address with a path.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// From now on it answers with this status.
    pub(crate) fn answer_with(&self, status: u16) {
        self.status.store(status, Ordering::SeqCst);
    }

    /// The next one it gets.
    pub(crate) async fn next(&mut self) -> Notification {
        let next = tokio::time::timeout(PATIENCE, self.notifications.recv());
        next.await.expect("no delivery came to the receiver").unwrap()
    }

    /// Whether all that came was looked at.
    pub(crate) fn is_quiet(&self) -> bool {
        self.notifications.is_empty()
    }
}

impl Notification {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

async fn take(
    request: Request<Incoming>,
    sender: mpsc::UnboundedSender<Notification>,
    status: Arc<AtomicU16>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    // A test that is over does not listen.
    let _ = sender.send(Notification { path: parts.uri.to_string(), headers: parts.headers, body });
    Ok(Response::builder().status(status.load(Ordering::SeqCst)).body(Full::default()).unwrap())
}
