//! The generation of the secrets that deliveries are signed with.

use rusqlite::Connection;
use switchboard_a2a::Timestamp;
use switchboard_engine::store::webhooks::Signing;

use super::session::Session;
use crate::sqlite::open::{meta, set_meta};

impl Session<'_> {
    pub(crate) fn rotate_signing(&mut self, previous_until: Timestamp) -> rusqlite::Result<Signing> {
        let generation = signing(self.connection)?.generation + 1;
        set_meta(self.connection, "signing_generation", generation.cast_signed())?;
        set_meta(self.connection, "signing_previous_until", previous_until.0)?;
        Ok(Signing { generation, previous_until })
    }
}

/// As it stands; nothing is stored before the first rotation.
pub(crate) fn signing(connection: &Connection) -> rusqlite::Result<Signing> {
    let generation = meta(connection, "signing_generation")?.unwrap_or(1).cast_unsigned();
    let previous_until = Timestamp(meta(connection, "signing_previous_until")?.unwrap_or(0));
    Ok(Signing { generation, previous_until })
}
