//! A receiver on loopback that does what a test says, on the bare socket.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use parking_lot::Mutex;
use switchboard_egress::{Allowlist, Egress, Options};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Long enough that only a hang reaches it.
pub(crate) const LONG: Duration = Duration::from_secs(30);

/// Short enough to wait for.
pub(crate) const SHORT: Duration = Duration::from_millis(300);

/// A client that may reach loopback by its addresses.
pub(crate) fn loopback_egress(nameservers: Vec<SocketAddr>) -> Egress {
    Egress::new(Options { allowlist: loopback(), nameservers, ..Options::default() }).unwrap()
}

pub(crate) fn loopback() -> Allowlist {
    Allowlist::parse([] as [&str; 0], ["127.0.0.0/8"]).unwrap()
}

pub(crate) fn post(url: &str) -> Request<Bytes> {
    Request::post(url).body(Bytes::from_static(b"hello")).unwrap()
}

/// Serves until it is dropped.
pub(crate) struct Receiver {
    pub(crate) address: SocketAddr,
    opened: watch::Receiver<usize>,
    closed: watch::Receiver<usize>,
    task: JoinHandle<()>,
}

impl Receiver {
    /// Runs `serve` on every connection.
    pub(crate) async fn start<F, Served>(serve: F) -> Self
    where
        F: Fn(TcpStream) -> Served + Send + 'static,
        Served: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (open, opened) = watch::channel(0);
        let (close, closed) = watch::channel(0);
        let close = Arc::new(close);
        let task = tokio::spawn(async move {
            loop {
                let (socket, _) = listener.accept().await.unwrap();
                open.send_modify(|count| *count += 1);
                let served = serve(socket);
                let close = Arc::clone(&close);
                tokio::spawn(async move {
                    served.await;
                    close.send_modify(|count| *count += 1);
                });
            }
        });
        Self { address, opened, closed, task }
    }

    /// Answers every request with the same bytes; what came in is kept.
    pub(crate) async fn answering(answer: &'static str) -> (Self, Arc<Mutex<Vec<String>>>) {
        let requests = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&requests);
        let receiver = Self::start(move |mut socket| {
            let kept = Arc::clone(&kept);
            async move {
                while let Some(request) = read_request(&mut socket).await {
                    kept.lock().push(request);
                    if socket.write_all(answer.as_bytes()).await.is_err() {
                        return;
                    }
                }
            }
        })
        .await;
        (receiver, requests)
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// How many connections were made so far.
    pub(crate) fn connections(&self) -> usize {
        *self.opened.borrow()
    }

    /// Waits until so many connections were made.
    pub(crate) async fn wait_for_opened(&mut self, count: usize) {
        self.opened.wait_for(|opened| *opened >= count).await.unwrap();
    }

    /// Waits until so many connections have ended.
    pub(crate) async fn wait_for_closed(&mut self, count: usize) {
        self.closed.wait_for(|closed| *closed >= count).await.unwrap();
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The next request as text, its body included; `None` when the connection has ended.
pub(crate) async fn read_request(socket: &mut (impl AsyncRead + Unpin)) -> Option<String> {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.to_lowercase().lines().find_map(|line| {
                line.strip_prefix("content-length:").map(|value| value.trim().parse::<usize>().unwrap())
            });
            if body.len() >= length.unwrap_or(0) {
                return Some(text);
            }
        }
        if socket.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
}
