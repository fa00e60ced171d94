//! Stream updates in v0.3, where flags are always printed and `final` marks the last event of the stream.

use serde::ser::{Serialize, SerializeMap, Serializer};

use super::{V03, kind_entry, view};
use crate::write_json::optional;
use crate::{Dialect, TaskArtifactUpdate, TaskStatusUpdate};

/// A status update with what only v0.3 writes: whether the stream ends with it.
pub(crate) struct StatusUpdate<'a> {
    pub(crate) update: &'a TaskStatusUpdate,
    pub(crate) is_final: bool,
}

impl Serialize for StatusUpdate<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.update.serialize(serializer)
    }
}

impl V03 for StatusUpdate<'_> {
    fn entries<M: SerializeMap>(&self, dialect: Dialect, map: &mut M) -> Result<(), M::Error> {
        let update = self.update;
        kind_entry(map, dialect, "status-update")?;
        map.serialize_entry("taskId", &update.task_id)?;
        map.serialize_entry("contextId", &update.context_id)?;
        map.serialize_entry("status", &view(dialect, &update.status))?;
        map.serialize_entry("final", &self.is_final)?;
        optional(map, "metadata", update.metadata.as_ref())
    }
}

impl V03 for TaskArtifactUpdate {
    fn entries<M: SerializeMap>(&self, dialect: Dialect, map: &mut M) -> Result<(), M::Error> {
        kind_entry(map, dialect, "artifact-update")?;
        map.serialize_entry("taskId", &self.task_id)?;
        map.serialize_entry("contextId", &self.context_id)?;
        map.serialize_entry("artifact", &view(dialect, &self.artifact))?;
        map.serialize_entry("append", &self.append)?;
        map.serialize_entry("lastChunk", &self.last_chunk)?;
        optional(map, "metadata", self.metadata.as_ref())
    }
}
