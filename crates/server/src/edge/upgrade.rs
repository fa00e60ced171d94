//! Connections that go on with another protocol after their HTTP exchange, such as a WebSocket: what serves such a
//! connection then is driven by the connection's own task, so that it keeps its slots and ends with graceful shutdown.

use std::pin::Pin;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use http::Request;
use http::header::UPGRADE;
use hyper::server::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use parking_lot::Mutex;

use super::transport::Transport;

/// What a connection goes on with, from the request that asks for it.
#[derive(Clone, Default)]
pub(crate) struct UpgradeSlot(Arc<Mutex<Option<BoxFuture<'static, ()>>>>);

impl UpgradeSlot {
    /// Hands it to a request that asks for another protocol.
    pub(super) fn offer<B>(&self, request: &mut Request<B>) {
        if request.headers().contains_key(UPGRADE) {
            request.extensions_mut().insert(self.clone());
        }
    }

    /// Serves the connection with this once its HTTP exchange is over.
    pub(crate) fn set(&self, session: BoxFuture<'static, ()>) {
        *self.0.lock() = Some(session);
    }

    pub(super) fn take(&self) -> Option<BoxFuture<'static, ()>> {
        self.0.lock().take()
    }
}

/// A connection that can be asked to close once its requests are answered.
pub(super) trait Drain: Future<Output = hyper::Result<()>> {
    fn drain(self: Pin<&mut Self>);
}

impl<S> Drain for http1::UpgradeableConnection<TokioIo<Transport>, S>
where
    S: hyper::service::HttpService<hyper::body::Incoming, ResBody = crate::Body>,
    S::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    fn drain(self: Pin<&mut Self>) {
        self.graceful_shutdown();
    }
}

impl<S> Drain for http2::Connection<TokioIo<Transport>, S, TokioExecutor>
where
    S: hyper::service::HttpService<hyper::body::Incoming, ResBody = crate::Body>,
    S::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    TokioExecutor: hyper::rt::bounds::Http2ServerConnExec<S::Future, crate::Body>,
{
    fn drain(self: Pin<&mut Self>) {
        self.graceful_shutdown();
    }
}
