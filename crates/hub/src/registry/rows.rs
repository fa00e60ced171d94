//! Writes the rows of the registry: registrations, tombstones, last good cards, and what the files have listed.

use bytes::Bytes;
use switchboard_engine::Caller;
use switchboard_engine::store::StoreError;
use switchboard_engine::store::hub::PutRegistration;

use super::Registry;

impl Registry {
    /// Writes a row, and says its version from now on. Only this process writes these rows, one change at a time, so a
    /// conflict tells of no other writer: the version that is known here is an old one, because a write has come through
    /// that was reported as failed, or because the row could not be read at the start. It is replaced all the same, or it
    /// could never be changed again.
    pub(super) async fn put_row(&self, mut put: PutRegistration) -> Result<u64, StoreError> {
        loop {
            match self.parts.store.put_registration(put.clone()).await {
                Err(StoreError::VersionConflict { current }) if current != put.expected_version => {
                    put.expected_version = current;
                }
                stored => return stored,
            }
        }
    }

    /// A row that no caller has asked for; without a body it is deleted.
    pub(super) fn own_row(&self, kind: &str, name: &str, known_version: u64, body: Option<Bytes>) -> PutRegistration {
        PutRegistration {
            kind: kind.to_owned(),
            name: name.to_owned(),
            expected_version: known_version,
            owner: Caller::local().id,
            at: self.parts.clock.now(),
            body,
            job: None,
            journal: Vec::new(),
        }
    }
}
