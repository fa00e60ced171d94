//! A store whose next commit that says "the program is being started" waits until the test lets it through.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use switchboard_engine::store::forwarding::StoreHooks;
use switchboard_engine::store::{Append, Appended, Store, StoreFuture};
use tokio::sync::Semaphore;

/// The test's end of it. Clones share it.
#[derive(Clone)]
pub(crate) struct Gate {
    /// The next such commit waits.
    is_closed: Arc<AtomicBool>,
    arrived: Arc<Semaphore>,
    opened: Arc<Semaphore>,
}

impl Gate {
    pub(crate) fn closed() -> Self {
        Self {
            is_closed: Arc::new(AtomicBool::new(true)),
            arrived: Arc::new(Semaphore::new(0)),
            opened: Arc::new(Semaphore::new(0)),
        }
    }

    /// Waits until a commit waits.
    pub(crate) async fn reached(&self) {
        self.arrived.acquire().await.unwrap().forget();
    }

    pub(crate) fn open(&self) {
        self.opened.add_permits(1);
    }
}

impl StoreHooks for Gate {
    fn append(&self, store: &Arc<dyn Store>, append: Append) -> StoreFuture<Appended> {
        let starts = String::from_utf8_lossy(&append.events).contains(r#""started":true"#);
        if !starts || !self.is_closed.swap(false, Ordering::SeqCst) {
            return store.append(append);
        }
        let (store, gate) = (store.clone(), self.clone());
        Box::pin(async move {
            gate.arrived.add_permits(1);
            gate.opened.acquire().await.unwrap().forget();
            store.append(append).await
        })
    }
}
