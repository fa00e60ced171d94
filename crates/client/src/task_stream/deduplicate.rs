//! Deduplication of a subscription against a snapshot that was taken after it began. Chunks have no ids, so they are
//! recognized by their text: those that lead up to the end of what the snapshot has added are in it.
//!
//! Where that is wrong, because an agent repeats itself, the dropped text is emitted when the terminal event is
//! confirmed.

use std::collections::HashMap;

use switchboard_a2a::{ArtifactId, Part, Task, TaskArtifactUpdate, TaskStatusUpdate};

use super::catch_up;
use super::seen_messages::SeenMessages;

/// How many occurrences of a chunk are tracked. More are one word repeated.
const MOST_PLACES: usize = 1024;

#[derive(Debug)]
pub(super) struct Deduplicator {
    messages: SeenMessages,
    artifacts: HashMap<ArtifactId, AddedContent>,
}

/// What the snapshot has added to an artifact.
#[derive(Debug)]
struct AddedContent {
    text: String,
    others: Vec<Part>,
    /// The artifact was not known before.
    is_new: bool,
    /// Where the chunks so far may begin in the text, and their length.
    places: Option<Vec<usize>>,
    length: usize,
    /// The chunks that are taken for duplicates.
    held: Vec<TaskArtifactUpdate>,
}

impl Deduplicator {
    pub(super) fn new(emitted: Option<&Task>, now: &Task) -> Self {
        let added = now.artifacts.iter().map(|artifact| {
            let mut known = emitted.iter().flat_map(|emitted| &emitted.artifacts);
            let known = known.find(|known| known.artifact_id == artifact.artifact_id);
            let rest = known.and_then(|known| catch_up::remaining_parts(&known.parts, &artifact.parts));
            let parts = rest.unwrap_or_else(|| artifact.parts.clone());
            let text = parts.iter().filter_map(Part::as_text).collect();
            let others = parts.into_iter().filter(|part| part.as_text().is_none()).collect();
            let is_new = known.is_none();
            let added = AddedContent { text, others, is_new, places: None, length: 0, held: Vec::new() };
            (artifact.artifact_id.clone(), added)
        });
        Self { messages: SeenMessages::of(now), artifacts: added.collect() }
    }

    /// Whether the snapshot holds the message of a status.
    pub(super) fn contains(&self, update: &TaskStatusUpdate) -> bool {
        update.status.message.as_ref().is_some_and(|message| self.messages.contains(message))
    }

    /// The chunks to emit: none for a duplicate, else this one and those before it that turn out to be no duplicates.
    pub(super) fn pass(&mut self, update: TaskArtifactUpdate) -> Vec<TaskArtifactUpdate> {
        let id = &update.artifact.artifact_id;
        let Some(added) = self.artifacts.get_mut(id) else { return vec![update] };
        if added.contains(&update) {
            added.held.push(update);
            return Vec::new();
        }
        // From here on everything is new.
        match self.artifacts.remove(id) {
            Some(added) if !added.is_at_its_end() => added.held.into_iter().chain([update]).collect(),
            _ => vec![update],
        }
    }
}

impl AddedContent {
    fn contains(&mut self, update: &TaskArtifactUpdate) -> bool {
        let parts = &update.artifact.parts;
        let chunk: String = parts.iter().filter_map(Part::as_text).collect();
        let mut others = parts.iter().filter(|part| part.as_text().is_none());
        let may_be_shown = update.append || self.is_new && self.places.is_none();
        if !may_be_shown || !others.all(|part| self.others.contains(part)) {
            return false;
        }
        let mut places: Vec<usize> = match &self.places {
            _ if !update.append => vec![0],
            Some(places) => places.clone(),
            None if chunk.is_empty() => return parts.iter().any(|part| part.as_text().is_none()),
            None => self.text.match_indices(&chunk).map(|(place, _)| place).take(MOST_PLACES).collect(),
        };
        let reset = |place: &usize| self.text.get(place + self.length..).is_some_and(|rest| rest.starts_with(&chunk));
        places.retain(reset);
        if places.is_empty() {
            return false;
        }
        self.length += chunk.len();
        self.places = Some(places);
        true
    }

    fn is_at_its_end(&self) -> bool {
        match &self.places {
            Some(places) => places.iter().any(|place| place + self.length == self.text.len()),
            None => true,
        }
    }
}
