//! Makes every connection of the SSRF guard: from a host to checked addresses to a socket, with no second lookup in
//! between, so that DNS rebinding cannot bypass the policy.
//!
//! hyper's client with a connector of our own, because a ready-made client resolves names again, and does not check
//! addresses that are written as numbers at all.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};
use http::Uri;
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout};
use tower_service::Service;

use crate::error::{SendError, TimeoutPhase};
use crate::policy::Policy;
use crate::socket::Socket;
use crate::stream::Stream;
use crate::target::Target;
use crate::tls::Tls;

/// How long one address may take before the next is tried beside it (Happy Eyeballs, RFC 8305).
const ATTEMPT_DELAY: Duration = Duration::from_millis(250);

/// How many of a name's addresses are tried; all of them are checked.
const MAX_ADDRESSES: usize = 8;

/// Makes the client's connections.
#[derive(Clone)]
pub(crate) struct Connector {
    pub(crate) policy: Arc<Policy>,
    pub(crate) tls: Tls,
    /// Limits the open connections.
    pub(crate) connection_slots: Arc<Semaphore>,
    pub(crate) connect_timeout: Duration,
    pub(crate) idle_timeout: Duration,
}

impl Service<Uri> for Connector {
    type Response = Stream;
    type Error = SendError;
    type Future = BoxFuture<'static, Result<Stream, SendError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), SendError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let connector = self.clone();
        Box::pin(async move { connector.connect(&uri).await })
    }
}

impl Connector {
    async fn connect(&self, uri: &Uri) -> Result<Stream, SendError> {
        let target = Target::parse(&uri.to_string())?;
        // Before the lookup, so that this also limits the lookups in flight.
        let start = Instant::now();
        let slot = timeout(self.connect_timeout, Arc::clone(&self.connection_slots).acquire_owned()).await;
        let Ok(Ok(permit)) = slot else {
            return Err(SendError::ConnectionLimit);
        };
        let waited = start.elapsed();
        let addresses = self.policy.addresses(&target).await?;
        let connecting = self.race(addresses, target.port(), permit);
        let (tcp, permit) = match timeout(self.connect_timeout.saturating_sub(waited), connecting).await {
            Err(_) => return Err(SendError::Timeout { phase: TimeoutPhase::Connect }),
            Ok(Err(error)) => return Err(SendError::Connect(redacted(&error))),
            Ok(Ok(connected)) => connected,
        };
        // Small requests are sent at once; without the option they are sent a little later.
        let _ = tcp.set_nodelay(true);
        let socket = Socket::new(tcp, permit, self.idle_timeout);
        if !target.is_https() {
            return Ok(Stream::plain(socket));
        }
        match timeout(self.connect_timeout, self.tls.handshake(&target, socket)).await {
            Err(_) => Err(SendError::Timeout { phase: TimeoutPhase::Tls }),
            Ok(Err(fault)) => Err(SendError::Tls(fault)),
            Ok(Ok(tls)) => Ok(Stream::encrypted(tls)),
        }
    }

    /// The first address that accepts. Each gets a short head start, so that a family without a route costs little. All
    /// that are tried at the same time count as open; where no slot is free, the next address waits for a failed one.
    async fn race(
        &self,
        addresses: Vec<IpAddr>,
        port: u16,
        permit: OwnedSemaphorePermit,
    ) -> io::Result<OpenedConnection> {
        let mut waiting = addresses.into_iter().take(MAX_ADDRESSES).peekable();
        let mut trying = FuturesUnordered::new();
        let mut spare = Some(permit);
        let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
        loop {
            if waiting.peek().is_some() {
                let permit = spare.take().or_else(|| Arc::clone(&self.connection_slots).try_acquire_owned().ok());
                if let Some((permit, address)) = permit.and_then(|permit| Some((permit, waiting.next()?))) {
                    trying.push(async move { (TcpStream::connect(SocketAddr::new(address, port)).await, permit) });
                }
            }
            let outcome = if waiting.peek().is_none() {
                trying.next().await
            } else {
                match timeout(ATTEMPT_DELAY, trying.next()).await {
                    Err(_) => continue,
                    Ok(outcome) => outcome,
                }
            };
            match outcome {
                Some((Ok(tcp), permit)) => return Ok((tcp, permit)),
                Some((Err(error), permit)) => {
                    last = error;
                    spare = Some(permit);
                }
                None => return Err(last),
            }
        }
    }
}

/// A connection and its slot.
type OpenedConnection = (TcpStream, OwnedSemaphorePermit);

/// The system's own message may hold an address, so only its kind is reported.
fn redacted(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => "the connection was refused",
        io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionAborted => "the connection was reset",
        io::ErrorKind::TimedOut => "the host did not answer",
        io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => "the host cannot be reached",
        io::ErrorKind::PermissionDenied => "the system does not permit it",
        _ => "the system could not connect",
    }
}
