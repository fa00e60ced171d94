//! Mixed work from many clients, until the server is taken away under them.

mod client;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use crate::journal::Journal;
use crate::load::client::Client;
use crate::random::Random;

/// How many clients work at the same time.
const CLIENTS: u64 = 16;

/// The clients of one round.
pub struct Load {
    journal: Arc<Journal>,
    ending: Arc<AtomicBool>,
    clients: Vec<JoinHandle<()>>,
}

impl Load {
    /// Starts all clients. `round` makes their names unique over all rounds on the same data.
    #[must_use]
    pub fn start(address: SocketAddr, round: u64, random: &Random) -> Self {
        let journal = Arc::new(Journal::default());
        let ending = Arc::new(AtomicBool::new(false));
        let clients = (0..CLIENTS)
            .map(|number| {
                let name = format!("{round}-{number}");
                let client = Client::new(name, address, random.fork(number), journal.clone(), ending.clone());
                std::thread::spawn(move || client.run())
            })
            .collect();
        Self { journal, ending, clients }
    }

    /// From now on a lost connection is no problem.
    pub fn expect_the_end(&self) {
        self.ending.store(true, Ordering::SeqCst);
    }

    /// Waits for all clients to notice that the server is gone; their journal.
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
