//! Reads any card that real agents publish: v1.0, v0.3, hybrids, and the oldest `interfaces` form.

use serde::Deserialize;

use super::security::{SchemeMap, SecurityRequirement};
use super::{AgentCapabilities, AgentCard, AgentCardSignature, AgentInterface, AgentProvider, AgentSkill};
use crate::lenient::{non_empty, object_from_slice, optional_flag, optional_object, or_default};

impl AgentCard {
    /// Reads a card leniently.
    pub fn decode(json: &[u8]) -> Result<Self, serde_json::Error> {
        object_from_slice(json)
    }
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct CardWire {
    #[serde(deserialize_with = "or_default")]
    name: String,
    #[serde(deserialize_with = "or_default")]
    description: String,
    #[serde(alias = "supported_interfaces", deserialize_with = "or_default")]
    supported_interfaces: Vec<AgentInterface>,
    /// Seen on cards older than v0.3.
    #[serde(deserialize_with = "or_default")]
    interfaces: Vec<AgentInterface>,
    #[serde(deserialize_with = "non_empty")]
    url: Option<String>,
    #[serde(alias = "preferred_transport", deserialize_with = "or_default")]
    preferred_transport: String,
    #[serde(alias = "additional_interfaces", deserialize_with = "or_default")]
    additional_interfaces: Vec<AgentInterface>,
    #[serde(alias = "protocol_version", deserialize_with = "non_empty")]
    protocol_version: Option<String>,
    #[serde(deserialize_with = "optional_object")]
    provider: Option<AgentProvider>,
    #[serde(deserialize_with = "or_default")]
    version: String,
    #[serde(alias = "documentation_url", deserialize_with = "non_empty")]
    documentation_url: Option<String>,
    #[serde(deserialize_with = "optional_object")]
    capabilities: Option<AgentCapabilities>,
    #[serde(alias = "security_schemes", deserialize_with = "or_default")]
    security_schemes: SchemeMap,
    #[serde(alias = "security_requirements", deserialize_with = "or_default")]
    security_requirements: Vec<SecurityRequirement>,
    #[serde(deserialize_with = "or_default")]
    security: Vec<SecurityRequirement>,
    #[serde(alias = "default_input_modes", deserialize_with = "or_default")]
    default_input_modes: Vec<String>,
    #[serde(alias = "default_output_modes", deserialize_with = "or_default")]
    default_output_modes: Vec<String>,
    #[serde(deserialize_with = "or_default")]
    skills: Vec<AgentSkill>,
    #[serde(deserialize_with = "or_default")]
    signatures: Vec<AgentCardSignature>,
    #[serde(alias = "icon_url", deserialize_with = "non_empty")]
    icon_url: Option<String>,
    #[serde(alias = "supports_authenticated_extended_card", deserialize_with = "optional_flag")]
    supports_authenticated_extended_card: Option<bool>,
}

impl From<CardWire> for AgentCard {
    fn from(mut wire: CardWire) -> Self {
        let mut capabilities = wire.capabilities.take().unwrap_or_default();
        capabilities.extended_agent_card =
            capabilities.extended_agent_card.or(wire.supports_authenticated_extended_card);
        Self {
            supported_interfaces: wire.take_interfaces(),
            name: wire.name,
            description: wire.description,
            provider: wire.provider,
            version: wire.version,
            documentation_url: wire.documentation_url,
            capabilities,
            security_schemes: wire.security_schemes.0,
            security_requirements: either(wire.security_requirements, wire.security),
            default_input_modes: wire.default_input_modes,
            default_output_modes: wire.default_output_modes,
            skills: wire.skills,
            signatures: wire.signatures,
            icon_url: wire.icon_url,
        }
    }
}

impl CardWire {
    /// The interfaces of `supportedInterfaces`; the v0.3 members count only where that is absent. An interface without
    /// a version has the default version of its form: 1.0, or the card's own v0.3 version.
    fn take_interfaces(&mut self) -> Vec<AgentInterface> {
        let listed = std::mem::take(&mut self.supported_interfaces);
        if !listed.is_empty() {
            return listed.into_iter().map(|interface| normalized(interface, "1.0")).collect();
        }
        let default_version = self.protocol_version.as_deref().unwrap_or("0.3");
        let first = self.url.take().map(|url| {
            let protocol_binding = std::mem::take(&mut self.preferred_transport);
            AgentInterface { url, protocol_binding, ..AgentInterface::default() }
        });
        let mut interfaces: Vec<AgentInterface> = Vec::new();
        for interface in first.into_iter().chain(self.additional_interfaces.drain(..)).chain(self.interfaces.drain(..))
        {
            let interface = normalized(interface, default_version);
            if !interfaces.contains(&interface) {
                interfaces.push(interface);
            }
        }
        interfaces
    }
}

/// The interface with the usual name of its binding. Old cards write `json-rpc`, `jsonrpc` or `rest`; unknown names stay.
fn normalized(mut interface: AgentInterface, default_version: &str) -> AgentInterface {
    let binding = &mut interface.protocol_binding;
    let letters: String = binding.chars().filter(char::is_ascii_alphanumeric).collect();
    match letters.to_ascii_lowercase().as_str() {
        _ if binding.is_empty() => *binding = "JSONRPC".to_owned(),
        "jsonrpc" | "jsonrpc20" => *binding = "JSONRPC".to_owned(),
        "httpjson" | "rest" => *binding = "HTTP+JSON".to_owned(),
        "grpc" => *binding = "GRPC".to_owned(),
        _ => {}
    }
    if interface.protocol_version.is_empty() {
        interface.protocol_version = default_version.to_owned();
    }
    interface
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct SkillWire {
    #[serde(deserialize_with = "or_default")]
    id: String,
    #[serde(deserialize_with = "or_default")]
    name: String,
    #[serde(deserialize_with = "or_default")]
    description: String,
    #[serde(deserialize_with = "or_default")]
    tags: Vec<String>,
    #[serde(deserialize_with = "or_default")]
    examples: Vec<String>,
    #[serde(alias = "input_modes", deserialize_with = "or_default")]
    input_modes: Vec<String>,
    #[serde(alias = "output_modes", deserialize_with = "or_default")]
    output_modes: Vec<String>,
    #[serde(alias = "security_requirements", deserialize_with = "or_default")]
    security_requirements: Vec<SecurityRequirement>,
    #[serde(deserialize_with = "or_default")]
    security: Vec<SecurityRequirement>,
}

impl From<SkillWire> for AgentSkill {
    fn from(wire: SkillWire) -> Self {
        Self {
            id: wire.id,
            name: wire.name,
            description: wire.description,
            tags: wire.tags,
            examples: wire.examples,
            input_modes: wire.input_modes,
            output_modes: wire.output_modes,
            security_requirements: either(wire.security_requirements, wire.security),
        }
    }
}

/// Hybrid cards hold the same requirements under both names.
fn either(v1: Vec<SecurityRequirement>, v03: Vec<SecurityRequirement>) -> Vec<SecurityRequirement> {
    if v1.is_empty() { v03 } else { v1 }
}
