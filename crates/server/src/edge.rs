//! The edge of the server: it accepts connections, and refuses what should not reach a binding.
//!
//! The accept loop is our own, because limits, timeouts and graceful shutdown are ours to keep. The listener, the stop
//! signal, the kernel and the authenticator are passed in.

mod accept_loop;
pub(crate) mod access_log;
pub(crate) mod activity;
pub(crate) mod address_slots;
pub(crate) mod authenticate;
mod client_address;
mod connection;
mod cors;
mod early_response;
mod handler;
mod header_limits;
mod hsts;
pub mod json_response;
mod landing_page;
mod lingering_close;
pub(crate) mod request_body;
pub(crate) mod request_guard;
pub(crate) mod request_id;
pub(crate) mod request_metrics;
pub(crate) mod router;
mod slow_client;
mod socket;
pub(crate) mod stream_slots;
mod tls;
mod tls_handshake;
mod transport;
pub(crate) mod upgrade;

use std::future::Future;
use std::io;
use std::sync::Arc;

use switchboard_engine::{Caller, Engine};
use switchboard_webhooks::{CallbackReceiver, Webhooks};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use self::accept_loop::AcceptLoop;
use self::connection::Phase;
use self::router::Router;
pub use self::tls::{Tls, TlsError, TlsPart};
use crate::api::{CallbackFront, WebhookFront};
use crate::health::HealthFront;
use crate::{Authenticator, CallerIdentity, CurrentState, Front, Options, ResponseBudget, State};

/// The server.
pub struct Server {
    state: State,
    fronts: Vec<Arc<dyn Front>>,
}

impl Server {
    /// A server for a kernel. With [`Options::open`] no key is needed.
    pub fn new(engine: Engine, options: Options, authenticator: Arc<dyn Authenticator>) -> Self {
        Self { state: State::new(engine, options, authenticator), fronts: Vec::new() }
    }

    /// Lets callers set webhooks, and operators manage them. Without this, or while they are not enabled, callers get
    /// the protocol's error for an unsupported feature.
    #[must_use]
    pub fn with_webhooks(mut self, webhooks: Webhooks) -> Self {
        self.state.outbox = Some(webhooks);
        self
    }

    /// Receives push notifications of other servers about work that was delegated to them.
    #[must_use]
    pub fn with_callbacks(mut self, callbacks: CallbackReceiver) -> Self {
        self.state.callbacks = Some(callbacks);
        self
    }

    /// Makes an open server one that needs keys as soon as `keyed` is cancelled. Requests and streams of callers without
    /// a key end then as if their key had been revoked.
    #[must_use]
    pub fn open_until(mut self, keyed: CancellationToken) -> Self {
        self.state.local = Arc::new(CallerIdentity::until(Caller::local(), keyed));
        self
    }

    /// Adds endpoints beside A2A. A path belongs to the first front that has it; the server's own come first.
    #[must_use]
    pub fn fronts(mut self, fronts: Vec<Arc<dyn Front>>) -> Self {
        self.fronts.extend(fronts);
        self
    }

    /// The bytes of responses in flight, readable while the server runs.
    pub fn responses(&self) -> Arc<ResponseBudget> {
        Arc::clone(&self.state.responses)
    }

    /// Serves until `shutdown` resolves, then shuts down gracefully: the kernel begins to close, new work is refused with
    /// the retryable error, and running tasks may end and be watched to their end. Once the kernel has drained no more
    /// connections are accepted, streams end, and requests in flight are answered. Connections still open
    /// [`Options::drain`] after the signal are cut.
    ///
    /// The kernel's own graceful shutdown is to be started by the same signal, beside this and not after it.
    pub async fn run(mut self, listener: TcpListener, shutdown: impl Future<Output = ()>) -> io::Result<()> {
        let own: [Arc<dyn Front>; 3] = [
            Arc::new(HealthFront::new(&self.state)),
            Arc::new(WebhookFront { webhooks: self.state.outbox.clone() }),
            Arc::new(CallbackFront { receiver: self.state.callbacks.clone() }),
        ];
        self.state.router = Arc::new(Router::new(own.into_iter().chain(self.fronts).collect()));
        let current_state = Arc::new(CurrentState::new(self.state));
        let state = current_state.get();
        let (phase, watched_phase) = tokio::sync::watch::channel(Phase::Serving);
        let mut accept_loop = AcceptLoop::new(&current_state, watched_phase);
        tokio::select! {
            biased;
            () = shutdown => {}
            never = accept_loop.run(&listener) => match never {},
        }
        state.engine.closing().cancel();
        let end = tokio::time::sleep(state.options.drain);
        tokio::pin!(end);
        tokio::select! {
            biased;
            () = state.engine.drained().cancelled() => {}
            () = &mut end => {}
            never = accept_loop.run(&listener) => match never {},
        }
        drop(listener);
        phase.send_replace(Phase::Stopping);
        let connections = accept_loop.connections;
        connections.close();
        let closed = tokio::select! {
            () = connections.wait() => true,
            () = &mut end => false,
        };
        if !closed {
            tracing::warn!(
                connections = connections.len(),
                "open connections are cut, they took longer than the drain time"
            );
            phase.send_replace(Phase::Over);
            connections.wait().await;
        }
        Ok(())
    }
}
