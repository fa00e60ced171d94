//! Agents that are gone while tasks or jobs name them: their tasks run to their end and their remote tasks are canceled,
//! restarts or not. A tombstone is the agent's definition as it was written, without headers that hold credentials. Its
//! address stays as it is written, or it would lead nowhere.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde_json::{Value, json};
use switchboard_engine::store::StoreError;
use switchboard_engine::{AgentName, Hosted};
use switchboard_fleet::config::agent_files::{AgentListing, read_item};
use switchboard_fleet::config::agents::Entry;

use super::apply::Definitions;
use super::registrations::{AGENT, holds_credential, is_credential};
use super::roster::{Draining, Roster};
use super::{Registry, default_agent};
use crate::jobs::CANCEL_KIND;

/// What a problem of a tombstone names as its origin.
const TOMBSTONE: &str = "tombstone";

/// What is left of an agent that is gone: its name, its definition, and whether that is of a file.
pub(super) type Tombstone = (AgentName, Value, bool);

impl Registry {
    /// Serves what is left of agents that are gone, for tasks of an earlier process.
    pub(super) fn bury(self: &Arc<Self>, definitions: &Definitions, tombstones: Vec<Tombstone>) {
        let mut draining = self.roster().draining.clone();
        for (name, item, is_of_file) in tombstones {
            // Tombstones of earlier versions name schemas too.
            let item = without_output_schemas(item);
            let entry = match is_of_file {
                true => self.files.lock().read_item(TOMBSTONE, &item),
                false => read_item(TOMBSTONE, &item.to_string()),
            };
            let card = definitions.cards.get(name.as_str()).cloned();
            let served = match entry {
                Ok(Entry::Hosted(agent)) => {
                    self.serve_hosted(&agent).map(|served| (served, None)).map_err(|error| error.to_string())
                }
                Ok(Entry::Remote(agent)) => self
                    .remote_state(&name, &agent, !is_of_file, card, None)
                    .map(|remote| ((self.serve_remote)(&remote), Some(remote))),
                Err(problems) => Err(problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")),
            };
            match served {
                Ok((served, remote)) => {
                    let hosted = Some(Arc::new(Hosted::serving(name.clone(), served)));
                    self.drain(&mut draining, Draining { name, was_served: true, hosted, remote });
                }
                Err(problem) => {
                    tracing::error!(agent = %name, problem, "an agent that is gone cannot be served to its tasks");
                }
            }
        }
        let roster = Roster::new(Vec::new(), draining, &self.own, default_agent(&self.parts), Vec::new());
        *self.roster.write() = Arc::new(roster);
    }

    /// Keeps tombstones of the agents that the files do not list any more, or not as agents elsewhere, before they are gone.
    /// At the start the files before are those that the last process has read. What cannot be written is known to the next
    /// process all the same: it stays among the stored definitions of the files, and is tried again meanwhile.
    pub(super) async fn keep_tombstones(
        &self,
        definitions: &mut Definitions,
        listing: &AgentListing,
    ) -> Vec<Tombstone> {
        let (mut tombstones, mut unwritten) = (Vec::new(), BTreeMap::new());
        // Of two definitions of a name the earlier one is that of an agent elsewhere, see below, which has left tasks there.
        let mut before = definitions.files.items.clone();
        before.extend(definitions.stored.unwritten.clone());
        let listed: HashMap<&str, &Entry> =
            listing.entries.iter().map(|entry| (entry.name().as_str(), entry)).collect();
        for (name, item) in &before {
            let is_elsewhere = item.get("url").is_some_and(|url| !url.is_null());
            // A program or built-in agent of the same name does not know the way to what its tasks have begun elsewhere.
            let is_kept = |listed: &&Entry| !is_elsewhere || matches!(listed, Entry::Remote(_));
            let is_listed = listed.get(name.as_str()).is_some_and(is_kept);
            if is_listed || definitions.registrations.contains_key(name) {
                continue;
            }
            let agent = AgentName::from(name.as_str());
            // A program without tasks leaves nothing behind.
            if !is_elsewhere && matches!(self.live_tasks(&agent).await, Ok(0)) {
                continue;
            }
            let item = without_output_schemas(without_credentials(item.clone()));
            let body = json!({ "item": item, "removed": true, "file": true });
            let version = definitions.tombstones.get(name).copied().unwrap_or(0);
            let row = self.own_row(AGENT, name, version, Some(body.to_string().into()));
            match self.put_row(row).await {
                Ok(version) => {
                    definitions.tombstones.insert(name.clone(), version);
                }
                Err(error) => {
                    tracing::warn!(agent = name, %error, "a tombstone could not be written, and is tried again");
                    unwritten.insert(name.clone(), item.clone());
                }
            }
            tombstones.push((agent, item, true));
        }
        definitions.stored.unwritten = unwritten;
        tombstones
    }

    /// Writes the tombstones that could not be written when the files were read.
    pub(super) async fn retry_tombstones(&self) {
        let mut definitions = self.definitions.lock().await;
        if definitions.stored.unwritten.is_empty() {
            return;
        }
        let files = definitions.files.clone();
        // They drain already, as they were served until then.
        self.keep_tombstones(&mut definitions, &files).await;
        self.store_file_definitions(&mut definitions, &files).await;
    }

    /// Forgets agents that are gone once no task and no job names them.
    pub(super) async fn forget_drained(&self) {
        let buried: Vec<String> = self.definitions.lock().await.tombstones.keys().cloned().collect();
        let roster = self.roster();
        let draining = roster.draining.iter().map(|draining| draining.name.as_str());
        let gone: BTreeSet<&str> = buried.iter().map(String::as_str).chain(draining).collect();
        let mut ended = Vec::new();
        for name in gone {
            if self.is_over_for(&roster, name).await {
                ended.push(name);
            }
        }
        if ended.is_empty() {
            return;
        }
        // One that was registered again, used and removed meanwhile is gone as before, and needed: what has ended is asked
        // again now that nothing changes.
        let mut definitions = self.definitions.lock().await;
        let before = self.roster();
        let mut forgotten = BTreeSet::new();
        for name in ended {
            if !self.is_over_for(&before, name).await {
                continue;
            }
            self.ended_by.lock().remove(&AgentName::from(name));
            self.delete_tombstone(&mut definitions, name).await;
            let is_elsewhere = before.entry(name).is_some_and(|entry| entry.remote.is_some());
            if !is_elsewhere && !definitions.registrations.contains_key(name) {
                self.delete_card(&mut definitions, name).await;
            }
            forgotten.insert(name);
        }
        let draining = before.draining.iter().filter(|draining| !forgotten.contains(draining.name.as_str()));
        let (entries, problems) = (before.entries.clone(), before.problems.clone());
        let roster = Roster::new(entries, draining.cloned().collect(), &self.own, default_agent(&self.parts), problems);
        *self.roster.write() = Arc::new(roster);
    }

    /// Whether nothing names an agent that is gone. A tombstone of one that is served again stands for nothing; one that
    /// could not be served at this start, for a variable or a file that is missing, may be at the next.
    async fn is_over_for(&self, roster: &Roster, name: &str) -> bool {
        let draining = roster.draining.iter().find(|draining| draining.name.as_str() == name);
        let is_needed = match (draining, roster.entry(name)) {
            (Some(draining), _) => self.is_needed(&draining.name, draining.remote.is_some()).await,
            (None, Some(entry)) if entry.remote.is_some() => Ok(false),
            // The live tasks of the name are those of the agent of this machine that has it now.
            (None, Some(_)) => self.owes_cancellations().await,
            (None, None) => self.is_needed(&AgentName::from(name), true).await,
        };
        match is_needed {
            Ok(is_needed) => !is_needed,
            Err(error) => {
                tracing::warn!(agent = name, %error, "live tasks could not be counted");
                false
            }
        }
    }

    /// Whether a task has not ended, or a job may still cancel what one has left at an agent that may be elsewhere.
    async fn is_needed(&self, name: &AgentName, may_be_remote: bool) -> Result<bool, StoreError> {
        if self.live_tasks(name).await? > 0 {
            self.ended_by.lock().remove(name);
            return Ok(true);
        }
        if !may_be_remote {
            return Ok(false);
        }
        // What is owed for the last of them is a job once the projector has read its end.
        let committed = *self.parts.store.committed().borrow();
        let ended_by = *self.ended_by.lock().entry(name.clone()).or_insert(committed);
        if self.projected.load(Ordering::Acquire) < ended_by {
            return Ok(true);
        }
        self.owes_cancellations().await
    }

    /// Whether a remote task is to be canceled. Which agent a job is about its body says, so any that is owed counts.
    async fn owes_cancellations(&self) -> Result<bool, StoreError> {
        let owed = self.parts.store.owed_jobs().await?;
        Ok(owed.iter().any(|(kind, count)| kind == CANCEL_KIND && *count > 0))
    }

    async fn delete_tombstone(&self, definitions: &mut Definitions, name: &str) {
        let Some(version) = definitions.tombstones.get(name).copied() else { return };
        match self.put_row(self.own_row(AGENT, name, version, None)).await {
            Ok(_) => {
                definitions.tombstones.remove(name);
            }
            // It is known as long as its row is there, and deleted the next time.
            Err(error) => tracing::warn!(agent = name, %error, "its tombstone could not be deleted"),
        }
    }

    /// Deletes the last good card of an agent that is gone or elsewhere now.
    pub(super) async fn delete_card(&self, definitions: &mut Definitions, name: &str) {
        if definitions.cards.remove(name).is_some() || self.has_card(name) {
            self.store_card(&AgentName::from(name), None).await;
        }
        self.forget_counted(&AgentName::from(name)).await;
    }

    /// Whether a card of it was taken since the start.
    fn has_card(&self, name: &str) -> bool {
        let roster = self.roster();
        roster.remote(&AgentName::from(name)).is_some_and(|remote| remote.observed.lock().card.is_some())
    }
}

/// Whether a tombstone is that of an agent of a file, which may name any variable.
pub(super) fn is_of_file(body: &[u8]) -> bool {
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    body["file"].as_bool().unwrap_or(false)
}

/// A definition without headers that hold credentials, by their name or by what they look like. One that is named as
/// `${VARIABLE}` is read again.
pub(super) fn without_credentials(mut item: Value) -> Value {
    for key in ["headers", "env"] {
        let Some(members) = item.get_mut(key).and_then(Value::as_object_mut) else { continue };
        members.retain(|name, value| {
            let value = value.as_str().unwrap_or_default();
            value.contains("${") || !(is_credential(name) || holds_credential(value))
        });
    }
    item
}

/// A definition without the schemas of its results. They are files, which are often deleted with the agent that names them,
/// and only a file of agents may name one. What the tasks of an agent that is gone come to is not checked.
fn without_output_schemas(mut item: Value) -> Value {
    let skills = item.get_mut("skills").and_then(Value::as_array_mut);
    for skill in skills.into_iter().flatten().filter_map(Value::as_object_mut) {
        skill.remove("outputSchema");
    }
    item
}
