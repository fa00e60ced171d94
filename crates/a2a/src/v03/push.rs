//! Webhooks in v0.3: the configuration is nested, its scheme a list, and REST hides the ids in a resource name.

use serde::Serialize;

use super::Binding;
use crate::{AuthenticationInfo, PushConfig, PushPayload};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PushView<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    task_id: Option<&'a str>,
    push_notification_config: NestedView<'a>,
}

/// The configuration without its task, as it also stands beside a message.
#[derive(Serialize)]
pub(crate) struct NestedView<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    url: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    authentication: Option<Authentication<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload: Option<PushPayload>,
}

#[derive(Serialize)]
struct Authentication<'a> {
    schemes: Vec<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    credentials: Option<&'a str>,
}

pub(crate) fn push_config(binding: Binding, config: &PushConfig) -> PushView<'_> {
    let task = config.task_id.as_deref().unwrap_or_default();
    let id = config.id.as_deref();
    let name = || format!("tasks/{task}/pushNotificationConfigs/{}", id.unwrap_or_default());
    PushView {
        name: (binding == Binding::Rest).then(name),
        task_id: (binding == Binding::Rpc).then_some(task),
        push_notification_config: nested_push_config(config),
    }
}

pub(crate) fn nested_push_config(config: &PushConfig) -> NestedView<'_> {
    NestedView {
        id: config.id.as_deref(),
        url: &config.url,
        token: config.token.as_deref(),
        authentication: config.authentication.as_ref().map(authentication),
        payload: config.payload,
    }
}

fn authentication(info: &AuthenticationInfo) -> Authentication<'_> {
    let schemes = if info.scheme.is_empty() { Vec::new() } else { vec![info.scheme.as_str()] };
    Authentication { schemes, credentials: info.credentials.as_deref() }
}
