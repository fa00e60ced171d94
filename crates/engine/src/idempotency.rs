//! The idempotency key: one key, one message, however often it is sent (deduplication of retries).
//!
//! The record of a key is written with its message in one transaction. Until that commit the key is reserved in
//! memory, so that a second send with the same key waits for the first instead of racing it.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use switchboard_a2a::{Message, PushConfig};
use tokio::sync::Notify;

use crate::caller::Caller;
use crate::directory::Address;
use crate::engine::Engine;
use crate::error::Error;
use crate::sha256::sha256;
use crate::store::IdempotencyScope;

/// Keys whose send is under way.
#[derive(Default)]
pub(crate) struct KeyReservations {
    held: Mutex<HashMap<IdempotencyScope, Arc<Notify>>>,
}

impl KeyReservations {
    /// Reserves a key; waits while another send holds it.
    pub(crate) async fn reserve(self: &KeyReservations, scope: &IdempotencyScope) -> KeyReservation<'_> {
        loop {
            let held = {
                let mut keys = self.held.lock();
                match keys.get(scope) {
                    Some(notify) => notify.clone(),
                    None => {
                        keys.insert(scope.clone(), Arc::default());
                        return KeyReservation { reservations: self, scope: scope.clone() };
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
pub(crate) struct KeyReservation<'a> {
    reservations: &'a KeyReservations,
    scope: IdempotencyScope,
}

impl Drop for KeyReservation<'_> {
    fn drop(&mut self) {
        if let Some(notify) = self.reservations.held.lock().remove(&self.scope) {
            notify.notify_waiters();
        }
    }
}

impl Engine {
    /// Whether something was sent under an idempotency key.
    pub async fn was_sent(&self, caller: &Caller, address: &Address, key: &str) -> Result<bool, Error> {
        let scope =
            IdempotencyScope { owner: caller.id.clone(), address: address.as_str().to_owned(), key: key.to_owned() };
        let known = self.inner.store.find_send(scope).await?;
        Ok(known.is_some())
    }
}

/// What two sends must share to be the same: the message, the modes, the webhook. Not how the answer is wanted.
pub(crate) fn digest(message: &Message, modes: &[String], push: Option<&PushConfig>) -> [u8; 32] {
    // Our own types always encode.
    let parts = serde_json::to_vec(&(message, modes, push)).unwrap_or_default();
    sha256([parts.as_slice()])
}
