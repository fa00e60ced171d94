//! Messages in v0.3: `parts` on JSON-RPC, `content` on REST, which has no member for referenced tasks.

use serde::ser::SerializeMap;

use super::carriers::with_carriers;
use super::{V03, kind_entry, view};
use crate::write_json::{non_empty_list, optional};
use crate::{Dialect, Message, Role};

impl V03 for Message {
    fn entries<M: SerializeMap>(&self, dialect: Dialect, map: &mut M) -> Result<(), M::Error> {
        let is_rest = dialect == Dialect::V03Rest;
        // v0.3 has two roles, so an unspecified one is written as the agent's.
        let role = match (is_rest, self.role) {
            (false, Role::User) => "user",
            (false, Role::Agent | Role::Unspecified) => "agent",
            (true, Role::User) => "ROLE_USER",
            (true, Role::Agent | Role::Unspecified) => "ROLE_AGENT",
        };
        kind_entry(map, dialect, "message")?;
        map.serialize_entry("messageId", &self.message_id)?;
        optional(map, "contextId", self.context_id.as_ref())?;
        optional(map, "taskId", self.task_id.as_ref())?;
        map.serialize_entry("role", role)?;
        // What a caller sends goes on as it came.
        let metadata = self.metadata.as_ref().filter(|_| self.role == Role::Agent);
        let parts = with_carriers(&self.parts, metadata);
        map.serialize_entry(if is_rest { "content" } else { "parts" }, &view(dialect, &*parts))?;
        optional(map, "metadata", self.metadata.as_ref())?;
        optional(map, "extensions", non_empty_list(&self.extensions))?;
        optional(map, "referenceTaskIds", non_empty_list(&self.reference_task_ids).filter(|_| !is_rest))
    }
}
