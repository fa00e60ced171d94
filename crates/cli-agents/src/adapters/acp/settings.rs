//! What an agent says can be set in a conversation, and how a model or an effort is set there.

use agent_client_protocol_schema::v1::{AGENT_METHOD_NAMES, SessionConfigValueId, SetSessionConfigOptionRequest};
use serde::Serialize;
use serde_json::Value;

use super::message;
use crate::adapters::dialogue::Steps;

/// So many offered values are named when one is not taken.
const MOST_NAMED: usize = 20;

/// What can be set.
#[derive(Default)]
pub(super) struct Settings {
    selects: Vec<Select>,
    /// The mode that is set, if the agent has modes.
    pub(super) mode: Option<String>,
}

/// One thing to choose.
struct Select {
    /// The agent's name for it; none for the model in the older form, which has a method of its own.
    id: Option<String>,
    category: String,
    current: Option<String>,
    offered: Vec<String>,
}

/// What the order wants set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    Model(String),
    Effort(String),
}

/// The older form, which the published crate no longer has: gemini knows only this one.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SetModel<'a> {
    session_id: &'a str,
    model_id: &'a str,
}

impl Wish {
    /// What is wished for.
    pub(super) fn value(&self) -> &str {
        match self {
            Self::Model(value) | Self::Effort(value) => value,
        }
    }

    /// For people.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Model(_) => "model",
            Self::Effort(_) => "effort",
        }
    }

    fn category(&self) -> &'static str {
        match self {
            Self::Model(_) => "model",
            Self::Effort(_) => "thought_level",
        }
    }
}

impl Settings {
    /// Reads what an agent says when a conversation begins, or after something was set.
    pub(super) fn read(result: &Value) -> Self {
        let options = result.get("configOptions").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let mut selects: Vec<Select> = options.iter().filter_map(Select::read).collect();
        if let Some(models) = result.get("models").filter(|models| models.is_object()) {
            let offered = names(models.get("availableModels"), "modelId");
            let current = string(models, "currentModelId");
            selects.push(Select { id: None, category: "model".to_owned(), current, offered });
        }
        let mode = result.pointer("/modes/currentModeId").and_then(Value::as_str).map(str::to_owned);
        Self { selects, mode }
    }

    /// Whether there is anything to choose.
    pub(super) fn is_empty(&self) -> bool {
        self.selects.is_empty()
    }

    /// The model in use, if the agent says.
    pub(super) fn model(&self) -> Option<String> {
        self.selects.iter().find(|select| select.category == "model")?.current.clone()
    }

    /// Whether a wish can be set here.
    pub(super) fn can(&self, wish: &Wish) -> bool {
        self.select(wish).is_some()
    }

    /// Whether a wish is fulfilled already.
    pub(super) fn has(&self, wish: &Wish) -> bool {
        self.select(wish).is_some_and(|select| select.current.as_deref() == Some(wish.value()))
    }

    /// Asks for a wish to be set.
    pub(super) fn set(&self, wish: &Wish, session: &str, id: i64, steps: &mut Steps) {
        match self.select(wish).and_then(|select| select.id.clone()) {
            Some(option) => {
                let value = SessionConfigValueId::new(wish.value().to_owned());
                let params = SetSessionConfigOptionRequest::new(session.to_owned(), option, value);
                message::request(steps, id, AGENT_METHOD_NAMES.session_set_config_option, params);
            }
            None => {
                let params = SetModel { session_id: session, model_id: wish.value() };
                message::request(steps, id, "session/set_model", params);
            }
        }
    }

    /// What could be wished for instead, for people.
    pub(super) fn offered(&self, wish: &Wish) -> String {
        let offered = self.select(wish).map(|select| select.offered.as_slice()).unwrap_or_default();
        let named: Vec<&str> = offered.iter().take(MOST_NAMED).map(String::as_str).collect();
        let more = if offered.len() > MOST_NAMED { ", …" } else { "" };
        format!("{}{more}", named.join(", "))
    }

    fn select(&self, wish: &Wish) -> Option<&Select> {
        self.selects.iter().find(|select| select.category == wish.category())
    }
}

impl Select {
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
