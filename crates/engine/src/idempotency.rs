//! The idempotency key: one key, one message, however often it is sent (deduplication of retries).
//!
//! The record of a key is written with its message in one transaction. Until that commit the key is reserved in
//! memory, so that a second send with the same key waits for the first instead of racing it.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use switchboard_a2a::{Message, PushConfig};
use tokio::sync::Notify;

use crate::sha256::sha256;
use crate::store::IdempotencyScope;

/// Keys whose send is under way.
#[derive(Default)]
pub(crate) struct KeyReservations {
    held: Mutex<HashMap<IdempotencyScope, Arc<Notify>>>,
}

impl KeyReservations {
    /// Reserves a key; waits while another send holds it.
    pub(crate) async fn reserve(self: &Arc<Self>, scope: &IdempotencyScope) -> KeyReservation {
        loop {
            let held = {
                let mut keys = self.held.lock();
                match keys.get(scope) {
                    Some(notify) => notify.clone(),
                    None => {
                        keys.insert(scope.clone(), Arc::default());
                        return KeyReservation { reservations: self.clone(), scope: scope.clone() };
                    }
                }
            };
            let mut released = std::pin::pin!(held.notified());
            released.as_mut().enable();
            if self.held.lock().get(scope).is_some_and(|current| Arc::ptr_eq(current, &held)) {
                released.await;
            }
        }
    }
}

/// A reserved key; free again when dropped.
pub(crate) struct KeyReservation {
    reservations: Arc<KeyReservations>,
    scope: IdempotencyScope,
}

impl Drop for KeyReservation {
    fn drop(&mut self) {
        if let Some(notify) = self.reservations.held.lock().remove(&self.scope) {
            notify.notify_waiters();
        }
    }
}

/// What two sends must share to be the same: the message, the modes, the webhook. Not how the answer is wanted, nor the
/// trace context, in which a retry may be a span of its own.
pub(crate) fn digest(message: &Message, modes: &[String], push: Option<&PushConfig>) -> [u8; 32] {
    // Our own types always encode.
    let parts = serde_json::to_vec(&(message, modes, push)).unwrap_or_default();
    sha256([parts.as_slice()])
}
