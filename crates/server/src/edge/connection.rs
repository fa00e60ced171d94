//! One connection from its first byte to its graceful close: HTTP/1.1 with keep-alive, or HTTP/2, as the client begins;
//! inside TLS if the server has a certificate.

use std::net::IpAddr;
use std::sync::Arc;

use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::MissedTickBehavior;

use super::activity::Activity;
use super::address_slots::AddressSlot;
use super::early_response::ParseErrors;
use super::handler::handle;
use super::header_limits::{LET_PASS, LET_PASS_HTTP2};
use super::slow_client::{ClientVerdict, SlowClientGuard};
use super::socket::Socket;
use super::tls_handshake::accept_tls;
use super::transport::{Layer, Transport};
use super::upgrade::{Drain, UpgradeSlot};
use crate::metric_definitions::{self as metric, GaugeGuard};
use crate::{CurrentState, Options};

/// hyper refuses smaller ones; a request with a few headers would not fit.
const SMALLEST_BUFFER: usize = 8 << 10;

/// Requests at a time on one HTTP/2 connection. Each may keep a whole response in memory until the client takes it, so
/// this also limits what one connection can cost.
const CONCURRENT_STREAMS: u32 = 64;

/// The phases of graceful shutdown, as connections see them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Serving,
    /// Answer the requests in flight and close.
    Stopping,
    Over,
}

/// The protocols, configured once.
pub(super) struct Protocols {
    http1: http1::Builder,
    http2: http2::Builder<TokioExecutor>,
    parse_errors: Arc<ParseErrors>,
}

impl Protocols {
    pub(super) fn new(options: &Options) -> Self {
        let (mut http1, mut http2) = (http1::Builder::new(), http2::Builder::new(TokioExecutor::new()));
        let header_bytes = options.request_headers.saturating_mul(LET_PASS).max(SMALLEST_BUFFER);
        // `slow_client` handles slow heads: a timer per request costs more and closes idle connections too early.
        http1.max_buf_size(header_bytes).header_read_timeout(None);
        http1.max_headers(options.headers.saturating_mul(LET_PASS));
        let list_size = u32::try_from(options.request_headers.saturating_mul(LET_PASS_HTTP2)).unwrap_or(u32::MAX);
        http2.max_header_list_size(list_size).max_concurrent_streams(CONCURRENT_STREAMS);
        Self { http1, http2, parse_errors: Arc::new(ParseErrors::new(options)) }
    }
}

/// What a connection holds until its end.
pub(super) struct ConnectionSlot {
    pub(super) _slot: OwnedSemaphorePermit,
    pub(super) _of_address: AddressSlot,
}

/// Serves one connection to its end. Its slot is given back then.
pub(super) async fn serve(
    stream: TcpStream,
    peer: IpAddr,
    current_state: Arc<CurrentState>,
    protocols: Arc<Protocols>,
    mut phase: watch::Receiver<Phase>,
    _slot: ConnectionSlot,
) {
    // Without it a stream's frames wait for the client's acknowledgements. A socket that is already closed refuses.
    let _ = stream.set_nodelay(true);
    let _counted = GaugeGuard::new(metric::CONNECTIONS);
    let activity = Arc::new(Activity::default());
    let options = &current_state.get().options;
    let parse_errors = &protocols.parse_errors;
    let begun = begin(stream, options, parse_errors, &activity, &mut phase).await;
    let Some((transport, speaks_http2)) = begun else { return };
    let watch = SlowClientGuard::new(Arc::clone(&activity), options);
    let io = TokioIo::new(transport);
    // Boxed: the connection keeps its memory as long as it lives, and a stream is open for long after its request.
    let upgrade = UpgradeSlot::default();
    let service = service_fn(|mut request| {
        upgrade.offer(&mut request);
        Box::pin(handle(Arc::clone(current_state.get()), Arc::clone(&activity), peer, request))
    });
    if speaks_http2 {
        Box::pin(serve_until_closed(protocols.http2.serve_connection(io, service), watch, &mut phase)).await;
        return;
    }
    let connection = protocols.http1.serve_connection(io, service).with_upgrades();
    serve_until_closed(connection, watch, &mut phase).await;
    if let Some(session) = upgrade.take() {
        tokio::select! {
            () = session => {}
            _ = phase.wait_for(|phase| *phase == Phase::Over) => {}
        }
    }
}

/// Serves a connection until it ends, times out or the server stops.
async fn serve_until_closed(connection: impl Drain, mut watch: SlowClientGuard, phase: &mut watch::Receiver<Phase>) {
    tokio::pin!(connection);
    let mut ticks = tokio::time::interval_at(tokio::time::Instant::now() + watch.tick(), watch.tick());
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
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
                // A client that is still writing its request could only be refused.
                Ok(Phase::Stopping) if watch.has_only_partial_head() => return,
                Ok(Phase::Stopping) => connection.as_mut().drain(),
                Ok(Phase::Over) | Err(_) => return,
            },
            _ = ticks.tick() => match watch.check() {
                ClientVerdict::Fine => {}
                ClientVerdict::HeaderTimeout => {
                    tracing::debug!("a connection is closed, its request headers took longer than the header timeout");
                    return;
                }
                ClientVerdict::WriteTimeout => {
                    tracing::debug!("a connection is cut, its client took none of an answer for the write timeout");
                    metrics::counter!(metric::UNREAD_CONNECTIONS).increment(1);
                    return;
                }
                ClientVerdict::IgnoresClose => {
                    tracing::debug!("a connection is cut, its client did not close it when asked to");
                    return;
                }
                ClientVerdict::Idle => connection.as_mut().drain(),
            },
        }
    }
}

/// The transport of HTTP, and whether it is HTTP/2; none if the client sends nothing in time, or the server stops first.
async fn begin(
    stream: TcpStream,
    options: &Options,
    parse_errors: &Arc<ParseErrors>,
    activity: &Arc<Activity>,
    phase: &mut watch::Receiver<Phase>,
) -> Option<(Transport, bool)> {
    let begun = async {
        let layer = match &options.tls {
            None => Layer::Left(Socket::new(stream, Arc::clone(activity))),
            // Boxed, because its state is large and every connection would keep room for it.
            Some(tls) => Box::pin(accept_tls(stream, tls, options.header_timeout, activity)).await?,
        };
        let mut transport = Transport::new(layer, activity);
        match tokio::time::timeout(options.header_timeout, transport.speaks_http2()).await {
            Ok(Ok(speaks_http2)) => {
                if !speaks_http2 {
                    transport.replace_parse_errors(parse_errors);
                }
                Some((transport, speaks_http2))
            }
            Ok(Err(_)) => None,
            Err(_) => {
                tracing::debug!("a connection is closed, nothing came within the header timeout");
                None
            }
        }
    };
    tokio::select! {
        begun = begun => begun,
        _ = phase.wait_for(|phase| *phase != Phase::Serving) => None,
    }
}
