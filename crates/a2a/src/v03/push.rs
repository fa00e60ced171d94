//! Webhooks in v0.3: the configuration is nested, its scheme a list, and REST has the ids in a resource name.

use serde::ser::{Serialize, SerializeMap, Serializer};

use super::V03;
use crate::write_json::optional;
use crate::{Dialect, PushConfig};

impl V03 for PushConfig {
    fn entries<M: SerializeMap>(&self, dialect: Dialect, map: &mut M) -> Result<(), M::Error> {
        let task = self.task_id.as_deref().unwrap_or_default();
        let id = self.id.as_deref().unwrap_or_default();
        match dialect {
            Dialect::V03Rest => map.serialize_entry("name", &format!("tasks/{task}/pushNotificationConfigs/{id}"))?,
            Dialect::V1 | Dialect::V03Rpc => map.serialize_entry("taskId", task)?,
        }
        map.serialize_entry("pushNotificationConfig", &NestedPushConfig(self))
    }
}

/// The configuration without its task, as it also stands beside a message.
pub(crate) struct NestedPushConfig<'a>(pub(crate) &'a PushConfig);

impl Serialize for NestedPushConfig<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(serde::Serialize)]
        struct Authentication<'a> {
            schemes: Vec<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            credentials: Option<&'a str>,
        }
        let config = self.0;
        let authentication = config.authentication.as_ref().map(|of| Authentication {
            schemes: Some(of.scheme.as_str()).filter(|scheme| !scheme.is_empty()).into_iter().collect(),
            credentials: of.credentials.as_deref(),
        });
        let mut map = serializer.serialize_map(None)?;
        optional(&mut map, "id", config.id.as_ref())?;
        map.serialize_entry("url", &config.url)?;
        optional(&mut map, "token", config.token.as_ref())?;
        optional(&mut map, "authentication", authentication.as_ref())?;
        optional(&mut map, "payload", config.payload.as_ref())?;
        map.end()
    }
}
