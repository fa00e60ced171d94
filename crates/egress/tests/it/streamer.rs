//! A server on loopback that answers with a body whose every piece is sent by the test.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream;
use http::Response;
use http_body_util::StreamBody;
use hyper::body::{Frame, Incoming};
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use parking_lot::Mutex;
use rcgen::CertificateParams;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};

use crate::encryption::Authority;
use crate::receiver::Receiver;

/// How a body travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Plain,
    Encrypted,
    Second,
}

pub(crate) const WAYS: [Way; 3] = [Way::Plain, Way::Encrypted, Way::Second];

type Pieces = UnboundedReceiver<io::Result<Bytes>>;

/// Answers one request; the body ends when the sender is gone and breaks where an error is sent.
pub(crate) struct Streamer {
    pub(crate) receiver: Receiver,
    pub(crate) url: String,
    sender: Option<UnboundedSender<io::Result<Bytes>>>,
}

impl Streamer {
    pub(crate) async fn start(authority: &Authority, way: Way) -> Self {
        let (sender, pieces) = mpsc::unbounded_channel();
        let pieces = Arc::new(Mutex::new(Some(pieces)));
        let params = CertificateParams::new(["localhost".to_owned()]).unwrap();
        let protocol = if way == Way::Second { b"h2".as_slice() } else { b"http/1.1" };
        let acceptor = authority.acceptor(&params, &[protocol]);
        let receiver = Receiver::start(move |socket| {
            let (acceptor, pieces) = (acceptor.clone(), Arc::clone(&pieces));
            async move {
                match way {
                    Way::Plain => serve(socket, way, pieces).await,
                    _ => serve(acceptor.accept(socket).await.unwrap(), way, pieces).await,
                }
            }
        })
        .await;
        let scheme = if way == Way::Plain { "http" } else { "https" };
        let url = format!("{scheme}://localhost:{}/", receiver.address.port());
        Self { receiver, url, sender: Some(sender) }
    }

    pub(crate) fn send(&self, piece: impl Into<Bytes>) {
        self.sender.as_ref().unwrap().send(Ok(piece.into())).unwrap();
    }

    pub(crate) fn tear(&self) {
        self.sender.as_ref().unwrap().send(Err(io::ErrorKind::Other.into())).unwrap();
    }

    pub(crate) fn end(&mut self) {
        self.sender = None;
    }

    /// Waits until the server has noticed that the client wants no more of the body.
    pub(crate) async fn wait_for_hang_up(&self) {
        self.sender.as_ref().unwrap().closed().await;
    }
}

async fn serve<Io>(io: Io, way: Way, pieces: Arc<Mutex<Option<Pieces>>>)
where
    Io: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(move |_: http::Request<Incoming>| {
        let pieces = pieces.lock().take().unwrap();
        let frames = stream::unfold(pieces, async |mut pieces: Pieces| {
            let piece = pieces.recv().await?;
            Some((piece.map(Frame::data), pieces))
        });
        async { Ok::<_, io::Error>(Response::new(StreamBody::new(Box::pin(frames)))) }
    });
    // The client may leave at any time, and a body may break on purpose.
    let _ = if way == Way::Second {
        http2::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(io), service).await
    } else {
        http1::Builder::new().serve_connection(TokioIo::new(io), service).await
    };
}
