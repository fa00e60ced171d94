//! A message between a caller and an agent.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, de};

use crate::lenient::{non_empty, or_default};
use crate::{ContextId, MessageId, Metadata, Part, TaskId};

/// One message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Message {
    /// Made by the sender.
    #[serde(default, alias = "message_id", deserialize_with = "or_default")]
    pub message_id: MessageId,
    /// The conversation it belongs to.
    #[serde(default, alias = "context_id", deserialize_with = "non_empty", skip_serializing_if = "Option::is_none")]
    pub context_id: Option<ContextId>,
    /// The task it belongs to.
    #[serde(default, alias = "task_id", deserialize_with = "non_empty", skip_serializing_if = "Option::is_none")]
    pub task_id: Option<TaskId>,
    /// The sender.
    #[serde(default, deserialize_with = "or_default")]
    pub role: Role,
    /// The content; at least one part in a request.
    #[serde(default, alias = "content", deserialize_with = "or_default")]
    pub parts: Vec<Part>,
    /// Anything else about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
    /// URIs of the extensions that contributed to it.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub extensions: Vec<String>,
    /// Other tasks it speaks of.
    #[serde(
        default,
        alias = "reference_task_ids",
        deserialize_with = "or_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub reference_task_ids: Vec<TaskId>,
}

/// The sender of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
pub enum Role {
    /// Not given.
    #[default]
    #[serde(rename = "ROLE_UNSPECIFIED")]
    Unspecified,
    /// The caller.
    #[serde(rename = "ROLE_USER")]
    User,
    /// The agent.
    #[serde(rename = "ROLE_AGENT")]
    Agent,
}

impl Message {
    /// A message of the given role with one text part and a fresh id.
    pub fn text(role: Role, text: impl Into<String>) -> Self {
        Self {
            message_id: MessageId::generate(),
            context_id: None,
            task_id: None,
            role,
            parts: vec![Part::text(text)],
            metadata: None,
            extensions: Vec::new(),
            reference_task_ids: Vec::new(),
        }
    }

    /// All text parts joined by line breaks, in order.
    pub fn joined_text(&self) -> String {
        let mut joined = String::new();
        for text in self.parts.iter().filter_map(Part::as_text) {
            if !joined.is_empty() {
                joined.push('\n');
            }
            joined.push_str(text);
        }
        joined
    }
}

impl Role {
    /// Reads any known spelling: `ROLE_USER`, `user`, `USER`.
    pub fn from_wire(text: &str) -> Option<Self> {
        match text {
            "ROLE_USER" | "user" | "USER" => Some(Self::User),
            "ROLE_AGENT" | "agent" | "AGENT" => Some(Self::Agent),
            // What the JavaScript SDK prints for a role it could not read itself.
            "UNRECOGNIZED" | "ROLE_UNSPECIFIED" | "" => Some(Self::Unspecified),
            _ => None,
        }
    }
}

impl<'de> Deserialize<'de> for Role {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = Role;
            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("ROLE_USER or ROLE_AGENT")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Role, E> {
                Role::from_wire(text).ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))
            }
            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Role, E> {
                match number {
                    0 => Ok(Role::Unspecified),
                    1 => Ok(Role::User),
                    2 => Ok(Role::Agent),
                    _ => Err(E::invalid_value(de::Unexpected::Unsigned(number), &self)),
                }
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}
