//! The agent card: what an agent is, its interfaces and its security schemes.
//!
//! The model is v1.0. It is written as a pure v1.0 card, a pure v0.3 card, or a hybrid for readers of both versions, and
//! read from any of these. Objects that are the same in both versions derive their JSON here.

mod read;
mod read_security;
pub mod security;
mod write;
mod write_security;

use serde::{Deserialize, Serialize};

use crate::lenient::{flag, non_empty, object_or_default, optional_flag, optional_object, or_default};
use crate::{Json, Metadata};

pub use security::{OAuthFlow, OAuthFlows, SecurityRequirement, SecurityScheme};
pub use write::CardFormat;

/// A whole card.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AgentCard {
    /// For people.
    #[serde(deserialize_with = "or_default")]
    pub name: String,
    /// What it does.
    #[serde(deserialize_with = "or_default")]
    pub description: String,
    /// Where it listens, best first.
    #[serde(alias = "supported_interfaces", deserialize_with = "or_default")]
    pub supported_interfaces: Vec<AgentInterface>,
    /// The organization that offers it.
    #[serde(deserialize_with = "optional_object")]
    pub provider: Option<AgentProvider>,
    /// The agent's own version.
    #[serde(deserialize_with = "or_default")]
    pub version: String,
    /// Where to read more.
    #[serde(alias = "documentation_url", deserialize_with = "non_empty")]
    pub documentation_url: Option<String>,
    /// What it can do beyond answering.
    #[serde(deserialize_with = "object_or_default")]
    pub capabilities: AgentCapabilities,
    /// The ways to authenticate, by name, in order.
    #[serde(alias = "security_schemes", deserialize_with = "read_security::schemes")]
    pub security_schemes: Vec<(String, SecurityScheme)>,
    /// Any one of these must be met.
    #[serde(alias = "security_requirements", deserialize_with = "or_default")]
    pub security_requirements: Vec<SecurityRequirement>,
    /// Media types it reads.
    #[serde(alias = "default_input_modes", deserialize_with = "or_default")]
    pub default_input_modes: Vec<String>,
    /// Media types it writes.
    #[serde(alias = "default_output_modes", deserialize_with = "or_default")]
    pub default_output_modes: Vec<String>,
    /// What it is good at.
    #[serde(deserialize_with = "or_default")]
    pub skills: Vec<AgentSkill>,
    /// Signatures over the v1.0 form.
    #[serde(deserialize_with = "or_default")]
    pub signatures: Vec<AgentCardSignature>,
    /// A picture.
    #[serde(alias = "icon_url", deserialize_with = "non_empty")]
    pub icon_url: Option<String>,
}

/// One address and what is spoken there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AgentInterface {
    /// The address.
    #[serde(deserialize_with = "or_default")]
    pub url: String,
    /// `JSONRPC`, `HTTP+JSON`, `GRPC`, or the URI of a custom binding.
    #[serde(alias = "protocol_binding", alias = "transport", alias = "protocol", deserialize_with = "or_default")]
    pub protocol_binding: String,
    /// To be sent with every request.
    #[serde(deserialize_with = "non_empty", skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// `1.0` or `0.3`.
    #[serde(alias = "protocol_version", alias = "version", deserialize_with = "or_default")]
    pub protocol_version: String,
}

/// The organization that offers an agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AgentProvider {
    /// Its site.
    #[serde(deserialize_with = "or_default")]
    pub url: String,
    /// Its name.
    #[serde(deserialize_with = "or_default")]
    pub organization: String,
}

/// What an agent can do beyond answering.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AgentCapabilities {
    /// Streams.
    #[serde(deserialize_with = "optional_flag", skip_serializing_if = "Option::is_none")]
    pub streaming: Option<bool>,
    /// Webhooks.
    #[serde(alias = "push_notifications", deserialize_with = "optional_flag")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub push_notifications: Option<bool>,
    /// Extensions it supports.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub extensions: Vec<AgentExtension>,
    /// A card for authenticated callers; v1.0 only.
    #[serde(alias = "extended_agent_card", deserialize_with = "optional_flag")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extended_agent_card: Option<bool>,
}

/// An extension an agent supports.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AgentExtension {
    /// Its name.
    #[serde(deserialize_with = "or_default")]
    pub uri: String,
    /// What it is for.
    #[serde(deserialize_with = "non_empty", skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Whether callers must declare it. Never written as false: signed cards must not hold defaults.
    #[serde(deserialize_with = "flag", skip_serializing_if = "std::ops::Not::not")]
    pub required: bool,
    /// Its settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub params: Option<Metadata>,
}

/// Something an agent is good at.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AgentSkill {
    /// Unique on the card.
    #[serde(deserialize_with = "or_default")]
    pub id: String,
    /// For people.
    #[serde(deserialize_with = "or_default")]
    pub name: String,
    /// What it does.
    #[serde(deserialize_with = "or_default")]
    pub description: String,
    /// Words to find it by.
    #[serde(deserialize_with = "or_default")]
    pub tags: Vec<String>,
    /// Things to say to it.
    #[serde(deserialize_with = "or_default")]
    pub examples: Vec<String>,
    /// Media types it reads, if not the card's.
    #[serde(alias = "input_modes", deserialize_with = "or_default")]
    pub input_modes: Vec<String>,
    /// Media types it writes, if not the card's.
    #[serde(alias = "output_modes", deserialize_with = "or_default")]
    pub output_modes: Vec<String>,
    /// What it needs beyond the card's requirements.
    #[serde(alias = "security_requirements", deserialize_with = "or_default")]
    pub security_requirements: Vec<SecurityRequirement>,
}

/// One signature (RFC 7515, detached).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AgentCardSignature {
    /// The protected header, base64url.
    #[serde(deserialize_with = "or_default")]
    pub protected: String,
    /// The signature, base64url.
    #[serde(deserialize_with = "or_default")]
    pub signature: String,
    /// The unprotected header.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header: Option<Json>,
}

impl AgentCard {
    /// Whether an interface speaks v0.3; only such a card can be written for v0.3 callers.
    pub fn speaks_v03(&self) -> bool {
        self.supported_interfaces.iter().any(AgentInterface::is_v03)
    }
}

impl AgentInterface {
    /// Whether it speaks v0.3.
    pub fn is_v03(&self) -> bool {
        self.protocol_version == "0.3" || self.protocol_version.starts_with("0.3.")
    }
}
