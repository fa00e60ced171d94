//! The accept loop: whoever connects gets a connection of their own, as long as there are places.

use std::convert::Infallible;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio_util::task::TaskTracker;

use super::accept_errors::AcceptErrors;
use super::connection::{self, ConnectionSlot, Phase, Protocols};
use super::overflow;
use crate::Door;
use crate::metric_definitions as metric;

/// After a failed accept, most often for lack of file descriptors: long enough for some to be given back.
const ACCEPT_AGAIN: Duration = Duration::from_millis(50);

/// How often collected samples are folded into their buckets when nobody reads the metrics.
const UPKEEP: Duration = Duration::from_secs(5);

/// Lets connections in and knows those that are open.
pub(super) struct Entrance {
    door: Arc<Door>,
    protocols: Arc<Protocols>,
    phase: watch::Receiver<Phase>,
    places: Arc<Semaphore>,
    farewells: Arc<Semaphore>,
    complaints: AcceptErrors,
    /// Everything that is open.
    pub(super) connections: TaskTracker,
}

impl Entrance {
    pub(super) fn new(door: &Arc<Door>, phase: watch::Receiver<Phase>) -> Self {
        let options = &door.state().options;
        Self {
            protocols: Arc::new(Protocols::new(options)),
            places: Arc::new(Semaphore::new(options.connections.min(Semaphore::MAX_PERMITS))),
            farewells: Arc::new(Semaphore::new(overflow::AT_ONCE)),
            complaints: AcceptErrors::default(),
            connections: TaskTracker::new(),
            door: Arc::clone(door),
            phase,
        }
    }

    /// Lets connections in for as long as it is polled.
    pub(super) async fn let_in(&mut self, listener: &TcpListener) -> Infallible {
        let mut upkeep = tokio::time::interval(UPKEEP);
        loop {
            let accepted = tokio::select! {
                biased;
                accepted = listener.accept() => accepted,
                _ = upkeep.tick() => {
                    if let Some(handle) = &self.door.state().options.metrics {
                        handle.run_upkeep();
                    }
                    continue;
                }
            };
            match accepted {
                Ok((stream, peer)) => self.serve(stream, peer.ip()),
                Err(error) if is_only_theirs(&error) => {}
                Err(error) => {
                    if let Some(unsaid) = self.complaints.note(Instant::now()) {
                        tracing::warn!(%error, unsaid, "a connection could not be accepted");
                    }
                    tokio::time::sleep(ACCEPT_AGAIN).await;
                }
            }
        }
    }

    fn serve(&self, stream: TcpStream, peer: IpAddr) {
        let state = self.door.state();
        let options = &state.options;
        let of_address = state.addresses.take(peer);
        let full = match (of_address, Arc::clone(&self.places).try_acquire_owned()) {
            (Some(of_address), Ok(slot)) => {
                let (door, protocols) = (Arc::clone(&self.door), Arc::clone(&self.protocols));
                let slot = ConnectionSlot { _slot: slot, _of_address: of_address };
                self.connections.spawn(connection::serve(stream, peer, door, protocols, self.phase.clone(), slot));
                return;
            }
            (None, _) => overflow::of_address(options.connections_per_address),
            (Some(_), Err(_)) => overflow::of_all(options.connections),
        };
        metrics::counter!(metric::REFUSED_CONNECTIONS).increment(1);
        // Inside TLS an answer would cost a handshake, which is more than a full server has to spare.
        if options.tls.is_none()
            && let Ok(farewell) = Arc::clone(&self.farewells).try_acquire_owned()
        {
            self.connections.spawn(overflow::turn_away(stream, full, farewell));
        }
    }
}

/// Whether only the one connection is lost and the next may be fine.
fn is_only_theirs(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}
