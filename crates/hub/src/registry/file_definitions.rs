//! The definitions of the agents of the files as they were last read, stored so that the next process knows the agents that
//! are edited out while no server runs: their tasks go on and end as those of an agent that is removed while one does. As in
//! a tombstone, headers that hold credentials are left out, and an address is stored with all that stands in it.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use switchboard_engine::store::StoreError;
use switchboard_fleet::config::agent_files::AgentListing;

use super::Registry;
use super::apply::Definitions;
use super::first_served::KIND;
use super::registrations::all_registrations;
use super::tombstones::without_credentials;

/// The registration that holds them.
const NAME: &str = "definitions";

/// The items as they are stored, by the names of their agents.
#[derive(Default)]
pub(super) struct StoredDefinitions {
    version: u64,
    items: BTreeMap<String, Value>,
    /// Of agents that are gone whose tombstones could not be written. They are stored with the others, so that the next
    /// process writes these tombstones; in place of what has the same name by now.
    pub(super) unwritten: BTreeMap<String, Value>,
}

impl Registry {
    /// Takes what the last process has read in place of files that this one has not read yet.
    pub(super) async fn load_file_definitions(&self, definitions: &mut Definitions) -> Result<(), StoreError> {
        let rows = all_registrations(&*self.parts.store, KIND).await?;
        let Some(row) = rows.into_iter().find(|row| row.name == NAME) else { return Ok(()) };
        let items: BTreeMap<String, Value> = serde_json::from_slice(&row.body).unwrap_or_else(|error| {
            tracing::error!(%error, "the agents that the files had at the last start are not known");
            BTreeMap::new()
        });
        definitions.files.items.clone_from(&items);
        definitions.stored = StoredDefinitions { version: row.version, items, unwritten: BTreeMap::new() };
        Ok(())
    }

    /// Stores the items of the files if they have changed; before the agents are served, so that no task begins at one that
    /// the next process does not know.
    pub(super) async fn store_file_definitions(&self, definitions: &mut Definitions, listing: &AgentListing) {
        let item = |(name, item): (&String, &Value)| (name.clone(), without_credentials(item.clone()));
        let mut items: BTreeMap<String, Value> = listing.items.iter().map(item).collect();
        let stored = &mut definitions.stored;
        items.extend(stored.unwritten.clone());
        if stored.items == items {
            return;
        }
        let row = self.own_row(KIND, NAME, stored.version, Some(json!(items).to_string().into()));
        match self.put_row(row).await {
            Ok(version) => (stored.version, stored.items) = (version, items),
            Err(error) => {
                tracing::warn!(%error, "tasks of agents that are edited out while the server is down will end");
            }
        }
    }
}
