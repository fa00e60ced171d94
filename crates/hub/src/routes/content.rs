//! The content of a route: the text of a message, or the JSON of a POST, with values of the event in its texts. JSON is made
//! from a tree whose shape is the definition's, so whatever an event says becomes a text in it, and no member.

use serde_json::{Map, Value, json};
use switchboard_a2a::Timestamp;

use super::template::{Room, Template, TemplateError};
use crate::feed::Item;

/// The values that a template may have.
const NAMES: [&str; 11] =
    ["agent", "at", "correlationId", "id", "payload", "route", "source", "state", "text", "timestamp", "topic"];

/// Content as it was written, and what is made of it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Content {
    written: Value,
    made_of: Made,
}

#[derive(Clone, Debug, PartialEq)]
enum Made {
    Text(Template),
    List(Vec<Made>),
    Object(Vec<(String, Made)>),
    /// What is in no text: numbers, truth values, null.
    Constant(Value),
}

impl Content {
    /// Reads content; the path to a text that is no template, and what is wrong with it.
    pub(super) fn read(written: &Value) -> Result<Self, (String, TemplateError)> {
        Ok(Self { written: written.clone(), made_of: Made::read(written, "")? })
    }

    pub(super) fn written(&self) -> &Value {
        &self.written
    }

    /// Fills in the values of an event. As many bytes are made of values and texts at most.
    pub(super) fn render(&self, values: &Value, most: usize) -> Value {
        self.made_of.render(values, &mut Room(most))
    }
}

impl Made {
    fn read(written: &Value, path: &str) -> Result<Self, (String, TemplateError)> {
        Ok(match written {
            Value::String(text) => Self::Text(Template::parse(text, &NAMES).map_err(|error| (path.to_owned(), error))?),
            Value::Array(items) => {
                let item = |(index, item): (usize, &Value)| Self::read(item, &format!("{path}[{index}]"));
                Self::List(items.iter().enumerate().map(item).collect::<Result<_, _>>()?)
            }
            Value::Object(members) => {
                let member = |(name, value): (&String, &Value)| {
                    Self::read(value, &format!("{path}.{name}")).map(|made| (name.clone(), made))
                };
                Self::Object(members.iter().map(member).collect::<Result<_, _>>()?)
            }
            other => Self::Constant(other.clone()),
        })
    }

    fn render(&self, values: &Value, room: &mut Room) -> Value {
        match self {
            Self::Text(template) => Value::String(template.render(values, room)),
            Self::List(items) => items.iter().map(|item| item.render(values, room)).collect(),
            Self::Object(members) => {
                let member = |(name, made): &(String, Self)| (name.clone(), made.render(values, room));
                Value::Object(members.iter().map(member).collect::<Map<_, _>>())
            }
            Self::Constant(value) => value.clone(),
        }
    }
}

/// What a template may use of an event: the item as the feed shows it, and what is looked for in it most.
pub(super) fn values(route: &str, item: &Item) -> Value {
    let mut values = json!(item);
    let at = item.timestamp.map(|at: Timestamp| at.to_string());
    let text = texts(&values["payload"]);
    values["at"] = json!(at);
    values["text"] = text.into();
    values["agent"] = values["source"]["agent"].clone();
    values["state"] = json!(item.state.map(switchboard_engine::state_label));
    values["route"] = route.into();
    values
}

/// What a payload says in words: the texts of its message or artifact, else what a line of the journal says.
fn texts(payload: &Value) -> String {
    let candidates = [
        &payload["statusUpdate"]["status"]["message"]["parts"],
        &payload["artifactUpdate"]["artifact"]["parts"],
        &payload["message"]["parts"],
    ];
    for parts in candidates.iter().filter_map(|parts| parts.as_array()) {
        let texts: Vec<&str> = parts.iter().filter_map(|part| part["text"].as_str()).collect();
        if !texts.is_empty() {
            return texts.join("\n");
        }
    }
    let said = ["problem", "message", "subject"].into_iter().find_map(|member| payload[member].as_str());
    said.unwrap_or_default().to_owned()
}
