//! The accept loop: each connection gets a task of its own while there are connection slots; beyond them load is shed.

use std::convert::Infallible;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio_util::task::TaskTracker;

use super::connection::{self, ConnectionSlot, Phase, Protocols};
use super::early_response::{self, CONCURRENT_REJECTIONS};
use crate::CurrentState;
use crate::metric_definitions as metric;

/// After a failed accept, most often for lack of file descriptors: long enough for some to be given back.
const ACCEPT_AGAIN: Duration = Duration::from_millis(50);

/// Accepts connections and tracks those that are open.
pub(super) struct AcceptLoop {
    current_state: Arc<CurrentState>,
    protocols: Arc<Protocols>,
    phase: watch::Receiver<Phase>,
    connection_slots: Arc<Semaphore>,
    rejection_slots: Arc<Semaphore>,
    accept_errors: AcceptErrors,
    pub(super) connections: TaskTracker,
}

impl AcceptLoop {
    pub(super) fn new(current_state: &Arc<CurrentState>, phase: watch::Receiver<Phase>) -> Self {
        let options = &current_state.get().options;
        Self {
            protocols: Arc::new(Protocols::new(options)),
            connection_slots: Arc::new(Semaphore::new(options.connections.min(Semaphore::MAX_PERMITS))),
            rejection_slots: Arc::new(Semaphore::new(CONCURRENT_REJECTIONS)),
            accept_errors: AcceptErrors::default(),
            connections: TaskTracker::new(),
            current_state: Arc::clone(current_state),
            phase,
        }
    }

    /// Accepts connections for as long as it is polled.
    pub(super) async fn run(&mut self, listener: &TcpListener) -> Infallible {
        loop {
            match listener.accept().await {
                Ok((stream, peer)) => self.serve(stream, peer.ip()),
                Err(error) if is_connection_error(&error) => {}
                Err(error) => {
                    if let Some(unsaid) = self.accept_errors.note(Instant::now()) {
                        tracing::warn!(%error, unsaid, "a connection could not be accepted");
                    }
                    tokio::time::sleep(ACCEPT_AGAIN).await;
                }
            }
        }
    }

    fn serve(&self, stream: TcpStream, peer: IpAddr) {
        let state = self.current_state.get();
        let options = &state.options;
        let message = match (state.addresses.take(peer), Arc::clone(&self.connection_slots).try_acquire_owned()) {
            (Some(of_address), Ok(slot)) => {
                let (current_state, protocols) = (Arc::clone(&self.current_state), Arc::clone(&self.protocols));
                let slot = ConnectionSlot { _slot: slot, _of_address: of_address };
                let phase = self.phase.clone();
                self.connections.spawn(connection::serve(stream, peer, current_state, protocols, phase, slot));
                return;
            }
            (None, _) => format!(
                "this address has {} connections open, as many as limits.connectionsPerAddress allows, close some first",
                options.connections_per_address
            ),
            (Some(_), Err(_)) => format!(
                "{} connections are open, as many as limits.connections allows, try again later",
                options.connections
            ),
        };
        metrics::counter!(metric::REFUSED_CONNECTIONS).increment(1);
        // Inside TLS an answer would cost a handshake, which is more than a full server has to spare.
        if options.tls.is_none()
            && let Ok(slot) = Arc::clone(&self.rejection_slots).try_acquire_owned()
        {
            self.connections.spawn(early_response::shed(stream, message, slot));
        }
    }
}

/// Whether only the one connection is lost and the next may be fine.
fn is_connection_error(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

/// Limits the log of failed accepts. They come by the dozen each second while file descriptors are short, and a full disk
/// would be the next failure.
#[derive(Default)]
struct AcceptErrors {
    logged_at: Option<Instant>,
    unlogged: u64,
}

impl AcceptErrors {
    /// At most one line in this time.
    const LOG_EVERY: Duration = Duration::from_secs(1);

    /// One more failure. If it is to be logged: how many before it were not.
    fn note(&mut self, now: Instant) -> Option<u64> {
        if self.logged_at.is_some_and(|logged| now.saturating_duration_since(logged) < Self::LOG_EVERY) {
            self.unlogged += 1;
            return None;
        }
        self.logged_at = Some(now);
        Some(std::mem::take(&mut self.unlogged))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_a_second_says_how_many_there_were() {
        let mut errors = AcceptErrors::default();
        let began = Instant::now();
        let after = |milliseconds: u64| began + Duration::from_millis(milliseconds);
        assert_eq!(errors.note(after(0)), Some(0));
        assert_eq!([50, 500, 999].map(|at| errors.note(after(at))), [None; 3]);
        assert_eq!(errors.note(after(1_000)), Some(3));
        assert_eq!(errors.note(after(1_050)), None);
        assert_eq!(errors.note(after(9_000)), Some(1));
    }
}
