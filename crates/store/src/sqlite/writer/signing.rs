//! Rotation of the signing secrets: their generations.

use rusqlite::{Connection, OptionalExtension};
use switchboard_a2a::Timestamp;
use switchboard_engine::store::webhooks::Signing;

use super::session::Session;
use crate::sqlite::open::{meta, set_meta};

/// Earlier generations kept at most: each adds a signature to every delivery.
const MOST: usize = 4;

impl Session<'_> {
    pub(crate) fn rotate_signing(&mut self, now: Timestamp, until: Timestamp) -> rusqlite::Result<Signing> {
        let Signing { generation, mut previous } = signing(self.connection)?;
        previous.insert(0, (generation, until));
        previous.retain(|(_, until)| now < *until);
        if until <= now {
            previous.clear();
        }
        previous.truncate(MOST);
        let generation = generation + 1;
        set_meta(self.connection, "signing_generation", generation.cast_signed())?;
        let text = previous.iter().map(|(generation, until)| format!("{generation} {}", until.0));
        let text = text.collect::<Vec<_>>().join("\n");
        self.execute("INSERT OR REPLACE INTO meta (name, value) VALUES ('signing_previous', ?1)", [text])?;
        Ok(Signing { generation, previous })
    }
}

/// The current generations; nothing is stored before the first rotation.
pub(crate) fn signing(connection: &Connection) -> rusqlite::Result<Signing> {
    let generation = meta(connection, "signing_generation")?.unwrap_or(1).cast_unsigned();
    let sql = "SELECT value FROM meta WHERE name = 'signing_previous'";
    let text: Option<String> = connection.query_row(sql, [], |row| row.get(0)).optional()?;
    let previous = text.unwrap_or_default();
    let previous = previous.lines().filter_map(|line| {
        let (generation, until) = line.split_once(' ')?;
        Some((generation.parse().ok()?, Timestamp(until.parse().ok()?)))
    });
    Ok(Signing { generation, previous: previous.collect() })
}
