//! The settings of a session that an agent offers, and the requests that set its model and effort.

use agent_client_protocol_schema::v1::{AGENT_METHOD_NAMES, SessionConfigValueId, SetSessionConfigOptionRequest};
use serde::Serialize;
use serde_json::Value;

use super::message;
use crate::adapters::dialogue::Steps;
use crate::adapters::json::list;
use crate::adapters::order::Order;

/// So many offered values are named when one is not taken.
const MOST_NAMED: usize = 20;

const MODEL: &str = "model";

#[derive(Default)]
pub(super) struct SessionSettings {
    selects: Vec<SelectOption>,
    /// The mode that is set, if the agent has modes.
    pub(super) mode: Option<String>,
}

struct SelectOption {
    /// The agent's id of it; none for the model in the older form, which has a method of its own.
    id: Option<String>,
    category: String,
    current: Option<String>,
    offered: Vec<String>,
}

/// A setting that the order asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SessionSetting {
    /// For people.
    pub(super) name: &'static str,
    /// The protocol's word for what it is about.
    category: &'static str,
    pub(super) value: String,
}

/// The older form, which the published crate no longer has: gemini knows only this one.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SetModel<'a> {
    session_id: &'a str,
    model_id: &'a str,
}

impl SessionSetting {
    /// What the order asks for, in the order in which it is set.
    pub(super) fn of(order: &Order) -> Vec<Self> {
        let wanted = [("model", MODEL, &order.model), ("effort", "thought_level", &order.effort)];
        let setting = |(name, category, value): (_, _, &Option<String>)| {
            value.clone().map(|value| Self { name, category, value })
        };
        wanted.into_iter().filter_map(setting).collect()
    }

    pub(super) fn is_model(&self) -> bool {
        self.category == MODEL
    }
}

impl SessionSettings {
    /// Reads what an agent says when a conversation begins, or after something was set.
    pub(super) fn read(result: &Value) -> Self {
        let options = list(result, "configOptions");
        let mut selects: Vec<SelectOption> = options.iter().filter_map(SelectOption::read).collect();
        if let Some(models) = result.get("models").filter(|models| models.is_object()) {
            let offered = names(models.get("availableModels"), "modelId");
            let current = string(models, "currentModelId");
            selects.push(SelectOption { id: None, category: MODEL.to_owned(), current, offered });
        }
        let mode = result.pointer("/modes/currentModeId").and_then(Value::as_str).map(str::to_owned);
        Self { selects, mode }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.selects.is_empty()
    }

    /// The model in use, if the agent says.
    pub(super) fn model(&self) -> Option<String> {
        self.selects.iter().find(|select| select.category == MODEL)?.current.clone()
    }

    /// The value of a setting, if the agent offers the setting and says its value.
    pub(super) fn current(&self, setting: &SessionSetting) -> Option<Option<&String>> {
        self.select(setting).map(|select| select.current.as_ref())
    }

    pub(super) fn set(&self, setting: &SessionSetting, session: &str, id: i64, steps: &mut Steps) {
        match self.select(setting).and_then(|select| select.id.clone()) {
            Some(option) => {
                let value = SessionConfigValueId::new(setting.value.clone());
                let params = SetSessionConfigOptionRequest::new(session.to_owned(), option, value);
                message::request(steps, id, AGENT_METHOD_NAMES.session_set_config_option, params);
            }
            None => {
                let params = SetModel { session_id: session, model_id: setting.value.as_str() };
                message::request(steps, id, "session/set_model", params);
            }
        }
    }

    /// The offered values, for people.
    pub(super) fn offered(&self, setting: &SessionSetting) -> String {
        let offered = self.select(setting).map(|select| select.offered.as_slice()).unwrap_or_default();
        let named: Vec<&str> = offered.iter().take(MOST_NAMED).map(String::as_str).collect();
        let more = if offered.len() > MOST_NAMED { ", …" } else { "" };
        format!("{}{more}", named.join(", "))
    }

    fn select(&self, setting: &SessionSetting) -> Option<&SelectOption> {
        self.selects.iter().find(|select| select.category == setting.category)
    }
}

impl SelectOption {
    fn read(option: &Value) -> Option<Self> {
        if option.get("type").and_then(Value::as_str) != Some("select") {
            return None;
        }
        let id = string(option, "id")?;
        let category = string(option, "category").unwrap_or_else(|| id.clone());
        let mut offered = names(option.get("options"), "value");
        // The values may be in groups.
        for group in option.get("options").and_then(Value::as_array).into_iter().flatten() {
            offered.extend(names(group.get("options"), "value"));
        }
        Some(Self { id: Some(id), category, current: string(option, "currentValue"), offered })
    }
}

fn names(list: Option<&Value>, member: &str) -> Vec<String> {
    list.and_then(Value::as_array).into_iter().flatten().filter_map(|item| string(item, member)).collect()
}

fn string(value: &Value, member: &str) -> Option<String> {
    value.get(member)?.as_str().map(str::to_owned)
}
