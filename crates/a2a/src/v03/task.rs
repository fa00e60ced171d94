//! Tasks, their status and their artifacts in v0.3.

use serde::ser::{Serialize, SerializeMap, Serializer};

use super::carriers::with_carriers;
use super::{V03, kind_entry, view};
use crate::write_json::{non_empty_list, optional};
use crate::{Artifact, Dialect, Task, TaskState, TaskStatus};

impl V03 for Task {
    fn entries<M: SerializeMap>(&self, dialect: Dialect, map: &mut M) -> Result<(), M::Error> {
        task_entries(self, dialect, !self.artifacts.is_empty(), map)
    }
}

/// A task of a page, in any dialect: `artifacts` is there exactly when it was asked for.
pub(crate) struct ListedTask<'a> {
    pub(crate) dialect: Dialect,
    pub(crate) task: &'a Task,
    pub(crate) include_artifacts: bool,
}

impl Serialize for ListedTask<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        task_entries(self.task, self.dialect, self.include_artifacts, &mut map)?;
        map.end()
    }
}

fn task_entries<M: SerializeMap>(
    task: &Task,
    dialect: Dialect,
    include_artifacts: bool,
    map: &mut M,
) -> Result<(), M::Error> {
    kind_entry(map, dialect, "task")?;
    map.serialize_entry("id", &task.id)?;
    map.serialize_entry("contextId", &task.context_id)?;
    map.serialize_entry("status", &view(dialect, &task.status))?;
    if include_artifacts {
        map.serialize_entry("artifacts", &view(dialect, task.artifacts.as_slice()))?;
    }
    if !task.history.is_empty() {
        map.serialize_entry("history", &view(dialect, task.history.as_slice()))?;
    }
    optional(map, "metadata", task.metadata.as_ref())
}

impl V03 for TaskStatus {
    fn entries<M: SerializeMap>(&self, dialect: Dialect, map: &mut M) -> Result<(), M::Error> {
        map.serialize_entry("state", state(dialect, self.state))?;
        optional(map, "message", self.message.as_ref().map(|message| view(dialect, message)).as_ref())?;
        optional(map, "timestamp", self.timestamp.as_ref())
    }
}

impl V03 for Artifact {
    fn entries<M: SerializeMap>(&self, dialect: Dialect, map: &mut M) -> Result<(), M::Error> {
        map.serialize_entry("artifactId", &self.artifact_id)?;
        optional(map, "name", self.name.as_ref())?;
        optional(map, "description", self.description.as_ref())?;
        let parts = with_carriers(&self.parts, self.metadata.as_ref());
        map.serialize_entry("parts", &view(dialect, &*parts))?;
        optional(map, "metadata", self.metadata.as_ref())?;
        optional(map, "extensions", non_empty_list(&self.extensions))
    }
}

/// The name of a state in a dialect.
pub(crate) fn state(dialect: Dialect, state: TaskState) -> &'static str {
    match (dialect, state) {
        (Dialect::V03Rpc, _) => state.kebab_case(),
        // Two Ls: a v0.3 REST client refuses the v1.0 spelling.
        (Dialect::V03Rest, TaskState::Canceled) => "TASK_STATE_CANCELLED",
        (Dialect::V1 | Dialect::V03Rest, _) => state.as_str(),
    }
}
