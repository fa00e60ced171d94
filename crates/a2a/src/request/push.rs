//! Requests about webhooks: v1.0 names task and configuration, v0.3 calls the task `id` or hides both in a name.

use serde::Deserialize;

use super::read_object::read_object;
use super::{PushRequest, params};
use crate::lenient::non_empty;
use crate::model::{PushWire, resource_name};
use crate::{Dialect, Error, Json, Operation, TaskId, Version};

pub(super) fn decode(dialect: Dialect, operation: Operation, json: &str) -> Result<PushRequest, Error> {
    let missing = |v1: &str, v03: &str| {
        let field = if dialect.version() == Version::V03 { v03 } else { v1 };
        Err(Error::invalid_field(field, "is missing"))
    };
    if operation == Operation::CreatePushConfig {
        let wire: PushWire = read_object(json)?;
        let config = match wire.into_config() {
            Ok(config) => config,
            Err(field) => return missing(field, &format!("pushNotificationConfig.{field}")),
        };
        if config.task_id.is_none() {
            return missing("taskId", "taskId");
        }
        return Ok(PushRequest::Create(config));
    }
    let wire: ConfigWire = read_object(json)?;
    let (task, config) = wire.ids(dialect.version());
    let task_id = match task {
        Some(task) => TaskId::from(task),
        None => return missing("taskId", "id"),
    };
    let config = config.map(str::to_owned);
    match operation {
        Operation::ListPushConfigs => Ok(PushRequest::List {
            task_id,
            page_size: params::page_size(wire.page_size.as_ref())?,
            page_token: wire.page_token,
            tenant: wire.tenant,
        }),
        Operation::DeletePushConfig => match config {
            Some(id) => Ok(PushRequest::Delete { task_id, id, tenant: wire.tenant }),
            None => missing("id", "pushNotificationConfigId"),
        },
        _ if config.is_none() && dialect == Dialect::V1 => missing("id", "id"),
        _ => Ok(PushRequest::Get { task_id, id: config, tenant: wire.tenant }),
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ConfigWire {
    #[serde(default, deserialize_with = "non_empty")]
    id: Option<String>,
    #[serde(default, alias = "task_id", deserialize_with = "non_empty")]
    task_id: Option<String>,
    #[serde(default, alias = "push_notification_config_id", alias = "configId", alias = "config_id")]
    #[serde(deserialize_with = "non_empty")]
    push_notification_config_id: Option<String>,
    #[serde(default, deserialize_with = "non_empty")]
    name: Option<String>,
    #[serde(default, deserialize_with = "non_empty")]
    parent: Option<String>,
    #[serde(default, alias = "page_size")]
    page_size: Option<Json>,
    #[serde(default, alias = "page_token", deserialize_with = "non_empty")]
    page_token: Option<String>,
    #[serde(default, deserialize_with = "non_empty")]
    tenant: Option<String>,
}

impl ConfigWire {
    /// The task and the configuration. A bare `id` is the task in v0.3, and in v1.0 the configuration.
    fn ids(&self, version: Version) -> (Option<&str>, Option<&str>) {
        let named = self.name.as_deref().or(self.parent.as_deref()).and_then(resource_name);
        let (named_task, named_config) = named.map_or((None, None), |(task, config)| (Some(task), config));
        let id = self.id.as_deref();
        let id_is_task = self.task_id.is_none()
            && named_task.is_none()
            && (version == Version::V03 || self.push_notification_config_id.is_some());
        let (task, config) = if id_is_task { (id, None) } else { (self.task_id.as_deref(), id) };
        (task.or(named_task), self.push_notification_config_id.as_deref().or(config).or(named_config))
    }
}
