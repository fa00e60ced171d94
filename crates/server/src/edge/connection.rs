//! One connection from its first byte to its end: HTTP/1.1 with keep-alive, or HTTP/2 without TLS, as the client begins.

use std::sync::Arc;

use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::MissedTickBehavior;

use super::activity::{Activity, Watched};
use super::handle::handle;
use super::head_limits::LET_PASS;
use super::watch::{Verdict, Watch};
use crate::metric_definitions as metric;
use crate::{Options, State};

/// hyper refuses smaller ones; a request with a few headers would not fit.
const SMALLEST_BUFFER: usize = 8 << 10;

/// Requests at a time on one HTTP/2 connection. Each may leave a whole answer in memory until the client takes it, so
/// this is also what one connection can cost.
const CONCURRENT_STREAMS: u32 = 64;

/// How the whole server is doing, as its connections see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Serving,
    /// Answer what is under way and close.
    Stopping,
    /// Close.
    Over,
}

/// The protocols, configured once.
pub(super) struct Protocols {
    builder: auto::Builder<TokioExecutor>,
}

impl Protocols {
    pub(super) fn new(options: &Options) -> Self {
        let mut builder = auto::Builder::new(TokioExecutor::new());
        let header_bytes = options.request_headers.saturating_mul(LET_PASS).max(SMALLEST_BUFFER);
        // Slow heads are the watch's affair: a timer per request costs more and closes idle connections too early.
        builder.http1().max_buf_size(header_bytes).header_read_timeout(None);
        builder.http1().max_headers(options.headers.saturating_mul(LET_PASS));
        let list_size = u32::try_from(header_bytes).unwrap_or(u32::MAX);
        builder.http2().max_header_list_size(list_size).max_concurrent_streams(CONCURRENT_STREAMS);
        Self { builder }
    }
}

/// Serves one connection to its end. The place is given back then.
pub(super) async fn serve(
    stream: TcpStream,
    state: Arc<State>,
    protocols: Arc<Protocols>,
    mut phase: watch::Receiver<Phase>,
    _place: OwnedSemaphorePermit,
) {
    // Without it a stream's frames wait for the client's acknowledgements. A socket that is already closed refuses.
    let _ = stream.set_nodelay(true);
    let _counted = Counted::new();
    let activity = Arc::new(Activity::default());
    let mut watch = Watch::new(Arc::clone(&activity), &state.options);
    let io = TokioIo::new(Watched::new(stream, Arc::clone(&activity)));
    let service = service_fn(move |request| handle(Arc::clone(&state), Arc::clone(&activity), request));
    let connection = protocols.builder.serve_connection(io, service);
    tokio::pin!(connection);
    let mut looks = tokio::time::interval_at(tokio::time::Instant::now() + watch.tick(), watch.tick());
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            biased;
            ended = connection.as_mut() => {
                if let Err(error) = ended {
                    tracing::debug!(%error, "a connection ended early");
                }
                return;
            }
            changed = phase.changed() => match changed.map(|()| *phase.borrow_and_update()) {
                Ok(Phase::Serving) => {}
                Ok(Phase::Stopping) => connection.as_mut().graceful_shutdown(),
                Ok(Phase::Over) | Err(_) => return,
            },
            _ = looks.tick() => match watch.judge() {
                Verdict::Fine => {}
                Verdict::TooSlow => {
                    tracing::debug!("a connection is closed, its request headers took longer than the header timeout");
                    return;
                }
                Verdict::Unread => {
                    tracing::debug!("a connection is cut, its client took none of an answer for the write timeout");
                    metrics::counter!(metric::UNREAD_CONNECTIONS).increment(1);
                    return;
                }
                Verdict::Deaf => {
                    tracing::debug!("a connection is cut, its client did not close it when asked to");
                    return;
                }
                Verdict::Idle => connection.as_mut().graceful_shutdown(),
            },
        }
    }
}

/// A connection in the gauge.
struct Counted;

impl Counted {
    fn new() -> Self {
        metrics::gauge!(metric::CONNECTIONS).increment(1.0);
        Self
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        metrics::gauge!(metric::CONNECTIONS).decrement(1.0);
    }
}
