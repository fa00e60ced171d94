//! A message to send, with everything a server must check before it believes it.

use serde::Deserialize;

use super::params;
use super::read_object::read_object;
use crate::error::Violation;
use crate::lenient::{non_empty, object, optional_object};
use crate::model::ConfigurationWire;
use crate::v03::{part_data, part_kinds};
use crate::{ContextId, Dialect, Error, Message, Metadata, Role, SendRequest, Version};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SendWire {
    #[serde(default, deserialize_with = "non_empty")]
    tenant: Option<String>,
    #[serde(alias = "request", alias = "msg", deserialize_with = "object")]
    message: Message,
    #[serde(default, deserialize_with = "optional_object")]
    configuration: Option<ConfigurationWire>,
    #[serde(default)]
    metadata: Option<Metadata>,
    /// Some callers put it beside the message.
    #[serde(default, alias = "context_id", deserialize_with = "non_empty")]
    context_id: Option<ContextId>,
}

pub(super) fn decode(dialect: Dialect, json: &str) -> Result<SendRequest, Error> {
    if dialect.version() == Version::V03 {
        part_kinds::check(json)?;
    }
    let wire: SendWire = read_object(json)?;
    let mut message = wire.message;
    if dialect == Dialect::V03Rest {
        part_data::unwrap_nested(&mut message);
    }
    check(&message)?;
    message.context_id = context(&message, wire.context_id)?;
    let configuration = wire.configuration.map(|mut configuration| {
        configuration.history_length = params::history_length(dialect, configuration.history_length);
        // On v0.3 REST an absent `blocking` is a protocol buffer's false.
        configuration.resolve(dialect == Dialect::V03Rest)
    });
    Ok(SendRequest { tenant: wire.tenant, message, configuration, metadata: wire.metadata })
}

fn check(message: &Message) -> Result<(), Error> {
    let mut violations = Vec::new();
    let mut found = |field: &str, description: &str| {
        violations.push(Violation { field: field.to_owned(), description: description.to_owned() });
    };
    if message.message_id.as_str().is_empty() {
        found("message.messageId", "is missing or empty");
    }
    if message.role == Role::Unspecified {
        found("message.role", "is missing: use ROLE_USER");
    }
    if message.parts.is_empty() {
        found("message.parts", "needs at least one part");
    }
    if violations.is_empty() { Ok(()) } else { Err(Error::from_violations(violations)) }
}

/// The conversation may be named in three places; they must agree.
fn context(message: &Message, beside: Option<ContextId>) -> Result<Option<ContextId>, Error> {
    let in_metadata = message.metadata.as_ref().and_then(|metadata| metadata.get("contextId"));
    let in_metadata = in_metadata.and_then(|value| value.as_text()).filter(|text| !text.is_empty());
    let in_metadata = in_metadata.map(ContextId::from);
    let mut chosen = message.context_id.clone();
    for (field, other) in [("contextId", beside), ("message.metadata.contextId", in_metadata)] {
        match (&chosen, other) {
            (Some(first), Some(other)) if *first != other => {
                let description = format!("{other:?} contradicts the context {first:?} named before it");
                return Err(Error::invalid_field(field, description));
            }
            (None, Some(other)) => chosen = Some(other),
            _ => {}
        }
    }
    Ok(chosen)
}
