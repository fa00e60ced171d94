//! The endpoint as a test holds it: it runs in a thread of its own, whatever runs the test, and ends with it.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Context;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use url::Url;

use crate::seen::Seen;
use crate::server::{self, State};

/// A running endpoint; dropping it ends it and everything it has not yet answered.
pub struct FakeModel {
    address: SocketAddr,
    url: Url,
    state: Arc<State>,
    /// Dropped to end the thread.
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Nothing of that kind came in time.
#[derive(Debug, thiserror::Error)]
#[error("no such request came within {patience:?}; these came: {requests:#?}")]
pub struct Missed {
    /// How long was waited.
    pub patience: Duration,
    /// What came instead.
    pub requests: Vec<Seen>,
}

impl FakeModel {
    /// Listens on a free port of 127.0.0.1.
    pub fn start() -> anyhow::Result<Self> {
        Self::start_at(0)
    }

    /// Listens on this port of 127.0.0.1.
    pub fn start_at(port: u16) -> anyhow::Result<Self> {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, port))
            .with_context(|| format!("cannot listen on 127.0.0.1:{port}"))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let url = Url::parse(&format!("http://{address}"))?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let state = Arc::new(State::default());
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = state.clone();
        let thread = std::thread::Builder::new().name("fake-model".to_owned()).spawn(move || {
            runtime.block_on(async move {
                // Only a listener that is none can fail here.
                let Ok(listener) = TcpListener::from_std(listener) else { return };
                tokio::select! {
                    () = server::run(listener, serving) => {}
                    _ = stopped => {}
                }
            });
        })?;
        Ok(Self { address, url, state, stop: Some(stop), thread: Some(thread) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The base of its addresses, as agents are told it.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// Every request so far, in the order they came.
    pub fn requests(&self) -> Vec<Seen> {
        self.state.seen.borrow().clone()
    }

    /// How many requests are being answered at this moment. One whose client went away is not.
    pub fn open(&self) -> usize {
        *self.state.open.borrow()
    }

    /// Waits until a request of this kind has come.
    pub async fn wait_for(&self, patience: Duration, is_wanted: impl Fn(&Seen) -> bool) -> Result<Seen, Missed> {
        let mut seen = self.state.seen.subscribe();
        let found = tokio::time::timeout(patience, seen.wait_for(|seen| seen.iter().any(&is_wanted))).await;
        let found = found.ok().and_then(Result::ok).and_then(|seen| seen.iter().find(|seen| is_wanted(seen)).cloned());
        found.ok_or_else(|| Missed { patience, requests: self.requests() })
    }

    /// Waits until no request is being answered; false if that took too long.
    pub async fn wait_until_idle(&self, patience: Duration) -> bool {
        let mut open = self.state.open.subscribe();
        tokio::time::timeout(patience, open.wait_for(|open| *open == 0)).await.is_ok_and(|idle| idle.is_ok())
    }
}

impl Drop for FakeModel {
    fn drop(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            // It has ended either way.
            let _ = thread.join();
        }
    }
}
