//! Which agents elsewhere the files have served before. An entry with `url` was once for commands only, so the first start
//! that serves one names it: what the upgrade has opened is not found out by its callers.

use std::collections::BTreeSet;

use serde_json::json;
use switchboard_client::redact_url;
use switchboard_engine::store::StoreError;
use switchboard_host::serve::FirstServed;

use super::Registry;
use super::apply::Definitions;
use super::registrations::all_registrations;
use super::roster::EntrySource;

/// The kind of registrations that say what the files have served.
pub(super) const KIND: &str = "served";
/// The one that holds their names.
const NAME: &str = "elsewhere";

/// The names as they are stored.
#[derive(Default)]
pub(super) struct KnownServed {
    version: u64,
    names: BTreeSet<String>,
}

impl Registry {
    /// Remembers the agents elsewhere that the files serve now, and returns those that were not served before.
    pub(super) async fn note_served(&self, definitions: &mut Definitions) -> Vec<FirstServed> {
        match self.store_served(definitions).await {
            Ok(new) => new,
            Err(error) => {
                tracing::warn!(%error, "the next start will name agents elsewhere as new");
                Vec::new()
            }
        }
    }

    async fn store_served(&self, definitions: &mut Definitions) -> Result<Vec<FirstServed>, StoreError> {
        let roster = self.roster();
        let is_of_file = |source: &EntrySource| *source == EntrySource::File;
        let served = roster.entries.iter().filter(|entry| is_of_file(&entry.source) && entry.hosted.is_some());
        let served: Vec<FirstServed> = served
            .filter_map(|entry| {
                // It is printed and logged, and its query may hold a key.
                let url = redact_url(entry.remote.as_ref()?.definition.url.as_str());
                Some(FirstServed { name: entry.name.to_string(), url })
            })
            .collect();
        let names: BTreeSet<String> = served.iter().map(|served| served.name.clone()).collect();
        if definitions.served.is_none() {
            let row = all_registrations(&*self.parts.store, KIND).await?.into_iter().find(|row| row.name == NAME);
            let known = row.map(|row| KnownServed {
                version: row.version,
                names: serde_json::from_slice(&row.body).unwrap_or_default(),
            });
            definitions.served = Some(known.unwrap_or_default());
        }
        let known = definitions.served.get_or_insert_default();
        if known.names == names {
            return Ok(Vec::new());
        }
        let new = served.into_iter().filter(|served| !known.names.contains(&served.name)).collect();
        let row = self.own_row(KIND, NAME, known.version, Some(json!(names).to_string().into()));
        known.version = self.put_row(row).await?;
        known.names = names;
        Ok(new)
    }
}
