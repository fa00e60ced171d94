//! Reads the send configuration and the push configuration in the spellings of both versions and all bindings.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use super::{AuthenticationInfo, PushConfig, PushPayload, SendConfiguration, SendResponse};
use crate::StreamResponse;
use crate::lenient::{count, non_empty, optional_flag, optional_object, or_default};

/// A send configuration before its dialect has decided what an absent `blocking` means.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ConfigurationWire {
    #[serde(alias = "accepted_output_modes", deserialize_with = "or_default")]
    accepted_output_modes: Vec<String>,
    #[serde(
        alias = "task_push_notification_config",
        alias = "pushNotificationConfig",
        alias = "push_notification_config",
        alias = "pushNotification",
        alias = "push_notification",
        deserialize_with = "optional_object"
    )]
    task_push_notification_config: Option<PushConfig>,
    #[serde(alias = "history_length", deserialize_with = "count")]
    pub(crate) history_length: Option<u32>,
    #[serde(alias = "return_immediately", deserialize_with = "optional_flag")]
    return_immediately: Option<bool>,
    #[serde(deserialize_with = "optional_flag")]
    blocking: Option<bool>,
}

impl ConfigurationWire {
    /// The configuration, given what it means when the caller says neither `returnImmediately` nor `blocking`.
    pub(crate) fn resolve(self, return_by_default: bool) -> SendConfiguration {
        let by_blocking = self.blocking.map(|blocking| !blocking);
        SendConfiguration {
            accepted_output_modes: self.accepted_output_modes,
            task_push_notification_config: self.task_push_notification_config,
            history_length: self.history_length,
            return_immediately: self.return_immediately.or(by_blocking).unwrap_or(return_by_default),
        }
    }
}

/// A push configuration, flat or nested, with its ids as members or inside a resource name.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct PushWire {
    #[serde(deserialize_with = "non_empty")]
    pub(crate) tenant: Option<String>,
    #[serde(deserialize_with = "non_empty")]
    id: Option<String>,
    #[serde(alias = "task_id", deserialize_with = "non_empty")]
    task_id: Option<String>,
    #[serde(deserialize_with = "non_empty")]
    url: Option<String>,
    #[serde(deserialize_with = "non_empty")]
    token: Option<String>,
    #[serde(deserialize_with = "optional_object")]
    authentication: Option<AuthenticationInfo>,
    payload: Option<PushPayload>,
    /// `tasks/{task}/pushNotificationConfigs/{config}`, on v0.3 REST.
    #[serde(deserialize_with = "non_empty")]
    name: Option<String>,
    /// `tasks/{task}`, on v0.3 REST.
    #[serde(deserialize_with = "non_empty")]
    parent: Option<String>,
    #[serde(alias = "config_id", deserialize_with = "non_empty")]
    config_id: Option<String>,
    #[serde(
        alias = "push_notification_config",
        alias = "taskPushNotificationConfig",
        alias = "task_push_notification_config",
        alias = "config",
        deserialize_with = "nested"
    )]
    push_notification_config: Option<Box<PushWire>>,
}

/// Nesting is at most three deep on any real wire; the JSON reader's own depth limit bounds a hostile one.
fn nested<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Box<PushWire>>, D::Error> {
    Ok(optional_object(deserializer)?.map(Box::new))
}

impl PushWire {
    /// Flattens what is nested; the inner value wins, since the outer one is only its envelope.
    pub(crate) fn flatten(mut self) -> Self {
        let named = self.name.as_deref().or(self.parent.as_deref()).and_then(resource_name);
        let (named_task, named_config) = named.map_or((None, None), |(task, config)| (Some(task), config));
        let task_id = self.task_id.take().or_else(|| named_task.map(str::to_owned));
        let id = self.id.take().or_else(|| self.config_id.take()).or_else(|| named_config.map(str::to_owned));
        let Some(inner) = self.push_notification_config.take() else {
            return Self { task_id, id, ..self };
        };
        let inner = inner.flatten();
        Self {
            tenant: inner.tenant.or(self.tenant),
            task_id: inner.task_id.or(task_id),
            id: inner.id.or(id),
            url: inner.url.or(self.url),
            token: inner.token.or(self.token),
            authentication: inner.authentication.or(self.authentication),
            payload: inner.payload.or(self.payload),
            ..Self::default()
        }
    }

    /// The configuration, or the name of the member it lacks.
    pub(crate) fn into_config(self) -> Result<PushConfig, &'static str> {
        let flat = self.flatten();
        Ok(PushConfig {
            tenant: flat.tenant,
            id: flat.id,
            task_id: flat.task_id,
            url: flat.url.ok_or("url")?,
            token: flat.token,
            authentication: flat.authentication,
            payload: flat.payload,
        })
    }
}

impl TryFrom<PushWire> for PushConfig {
    type Error = String;

    fn try_from(wire: PushWire) -> Result<Self, String> {
        wire.into_config().map_err(|field| format!("missing field `{field}`"))
    }
}

/// Splits `tasks/{task}` or `tasks/{task}/pushNotificationConfigs/{config}`.
pub(crate) fn resource_name(name: &str) -> Option<(&str, Option<&str>)> {
    let rest = name.strip_prefix("tasks/").or_else(|| name.strip_prefix("task/"))?;
    let (task, config) = match rest.split_once("/pushNotificationConfigs") {
        None => (rest, None),
        Some((task, config)) => (task, config.strip_prefix('/').filter(|config| !config.is_empty())),
    };
    (!task.is_empty()).then_some((task, config))
}

#[derive(Deserialize)]
pub(super) struct AuthenticationWire {
    #[serde(default, deserialize_with = "non_empty")]
    scheme: Option<String>,
    /// v0.3 has a list here; v1.0 keeps the first.
    #[serde(default, deserialize_with = "or_default")]
    schemes: Vec<String>,
    #[serde(default, deserialize_with = "non_empty")]
    credentials: Option<String>,
}

impl From<AuthenticationWire> for AuthenticationInfo {
    fn from(wire: AuthenticationWire) -> Self {
        let scheme = wire.scheme.or_else(|| wire.schemes.into_iter().next()).unwrap_or_default();
        Self { scheme, credentials: wire.credentials }
    }
}

/// Members, bare objects and `kind` are all read as for a stream frame.
impl<'de> Deserialize<'de> for SendResponse {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match StreamResponse::deserialize(deserializer)? {
            StreamResponse::Task(task) => Ok(Self::Task(task)),
            StreamResponse::Message(message) => Ok(Self::Message(message)),
            _ => Err(D::Error::custom("an answer to a sent message must be a task or a message, not an update")),
        }
    }
}
