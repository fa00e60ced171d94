//! Mixed work from many clients, until the server is taken away under them.

mod client;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread::JoinHandle;

use crate::journal::Journal;
use crate::load::client::Client;
use crate::random::Random;

/// How many clients work at the same time.
const CLIENTS: u64 = 16;

/// What the clients are told while they work.
#[derive(Default)]
struct Signal(AtomicU8);

impl Signal {
    const DYING: u8 = 1;
    const STOP: u8 = 2;

    fn give(&self, signal: u8) {
        self.0.store(signal, Ordering::SeqCst);
    }

    /// Whether a lost connection is no surprise.
    fn is_dying(&self) -> bool {
        self.0.load(Ordering::SeqCst) == Self::DYING
    }

    fn is_stop(&self) -> bool {
        self.0.load(Ordering::SeqCst) == Self::STOP
    }
}

/// The clients of one round.
pub struct Load {
    journal: Arc<Journal>,
    signal: Arc<Signal>,
    clients: Vec<JoinHandle<()>>,
}

impl Load {
    /// Starts all clients. `round` makes their names unique over all rounds on the same data.
    #[must_use]
    pub fn start(address: SocketAddr, round: u64, random: &Random) -> Self {
        let journal = Arc::new(Journal::default());
        let signal = Arc::<Signal>::default();
        let clients = (0..CLIENTS)
            .map(|number| {
                let name = format!("{round}-{number}");
                let client = Client::new(name, address, random.fork(number), journal.clone(), signal.clone());
                std::thread::spawn(move || client.run())
            })
            .collect();
        Self { journal, signal, clients }
    }

    /// From now on a lost connection is no problem.
    pub fn expect_the_end(&self) {
        self.signal.give(Signal::DYING);
    }

    /// Every client ends after what it is doing.
    pub fn stop(&self) {
        self.signal.give(Signal::STOP);
    }

    /// Waits for all clients to stop, or to notice that the server is gone; their journal.
    #[must_use]
    pub fn join(self) -> Arc<Journal> {
        for client in self.clients {
            if client.join().is_err() {
                self.journal.problem("a client panicked".to_owned());
            }
        }
        self.journal
    }
}
