//! The edge of the server: it takes connections in, and turns away what should not reach a binding.
//!
//! The accept loop is our own, because caps, timeouts and an orderly stop are ours to keep. Everything is passed in:
//! the listener, the stop signal, the kernel and those who know the callers.

mod accept_errors;
pub(crate) mod access_log;
pub(crate) mod activity;
pub(crate) mod authenticate;
mod connection;
mod cors;
pub(crate) mod guard;
mod handle;
mod head_limits;
mod landing;
mod linger;
pub(crate) mod meter;
mod overflow;
pub(crate) mod plain;
mod request_body;
pub(crate) mod request_id;
pub(crate) mod stream_slots;
mod watch;

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use switchboard_engine::Engine;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;

use self::accept_errors::AcceptErrors;
use self::connection::{Phase, Protocols};
use crate::metric_definitions as metric;
use crate::{Authenticator, Options, State};

/// After a failed accept, most often for lack of file descriptors: long enough for some to be given back.
const ACCEPT_AGAIN: Duration = Duration::from_millis(50);

/// How often collected samples are folded into their buckets when nobody reads the metrics.
const UPKEEP: Duration = Duration::from_secs(5);

/// The front door.
pub struct Server {
    state: Arc<State>,
}

impl Server {
    /// A front door for a kernel. With [`Options::open`] nobody is asked for a key.
    pub fn new(engine: Engine, options: Options, authenticator: Arc<dyn Authenticator>) -> Self {
        Self { state: Arc::new(State::new(engine, options, authenticator)) }
    }

    /// Serves until `shutdown` resolves. Then no connection is taken in any more, open streams end, requests under way
    /// are answered, and what is still open after [`Options::drain`] is cut.
    ///
    /// A stop begins the kernel's closing. Blocked senders are answered when the kernel has drained, so its own
    /// shutdown is to be started by the same signal, beside this and not after it.
    pub async fn run(self, listener: TcpListener, shutdown: impl Future<Output = ()>) -> io::Result<()> {
        let state = self.state;
        let options = &state.options;
        let protocols = Arc::new(Protocols::new(options));
        let places = Arc::new(Semaphore::new(options.connections.min(Semaphore::MAX_PERMITS)));
        let farewells = Arc::new(Semaphore::new(overflow::AT_ONCE));
        let (phase, watched_phase) = tokio::sync::watch::channel(Phase::Serving);
        let connections = TaskTracker::new();
        let mut complaints = AcceptErrors::default();
        let mut upkeep = tokio::time::interval(UPKEEP);
        tokio::pin!(shutdown);
        loop {
            let accepted = tokio::select! {
                biased;
                () = &mut shutdown => break,
                accepted = listener.accept() => accepted,
                _ = upkeep.tick() => {
                    if let Some(handle) = &options.metrics {
                        handle.run_upkeep();
                    }
                    continue;
                }
            };
            let stream = match accepted {
                Ok((stream, _)) => stream,
                Err(error) if is_only_theirs(&error) => continue,
                Err(error) => {
                    if let Some(unsaid) = complaints.note(Instant::now()) {
                        tracing::warn!(%error, unsaid, "a connection could not be accepted");
                    }
                    tokio::time::sleep(ACCEPT_AGAIN).await;
                    continue;
                }
            };
            let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
                metrics::counter!(metric::REFUSED_CONNECTIONS).increment(1);
                if let Ok(farewell) = Arc::clone(&farewells).try_acquire_owned() {
                    connections.spawn(overflow::turn_away(stream, options.connections, farewell));
                }
                continue;
            };
            let connection =
                connection::serve(stream, Arc::clone(&state), Arc::clone(&protocols), watched_phase.clone(), place);
            connections.spawn(connection);
        }
        drop(listener);
        state.engine.closing().cancel();
        phase.send_replace(Phase::Stopping);
        connections.close();
        if tokio::time::timeout(options.drain, connections.wait()).await.is_err() {
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

/// Whether only the one connection is lost and the next may be fine.
fn is_only_theirs(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}
