//! Reads any card that real agents publish: v1.0, v0.3, hybrids, and the oldest `interfaces` form.

use serde::{Deserialize, Deserializer};

use super::read_security::{self, Requirements, Schemes};
use super::{
    AgentCapabilities, AgentCard, AgentCardSignature, AgentExtension, AgentInterface, AgentProvider, AgentSkill,
};
use crate::lenient::{flag, non_empty, object, optional_flag, optional_object, or_default};
use crate::{Json, Metadata};

impl AgentCard {
    /// Reads a card leniently.
    pub fn decode(json: &[u8]) -> Result<Self, serde_json::Error> {
        let mut deserializer = serde_json::Deserializer::from_slice(json);
        let card = object(&mut deserializer)?;
        deserializer.end()?;
        Ok(card)
    }
}

impl<'de> Deserialize<'de> for AgentCard {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        CardWire::deserialize(deserializer).map(CardWire::into_card)
    }
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct CardWire {
    #[serde(deserialize_with = "or_default")]
    name: String,
    #[serde(deserialize_with = "or_default")]
    description: String,
    #[serde(alias = "supported_interfaces", deserialize_with = "or_default")]
    supported_interfaces: Vec<InterfaceWire>,
    /// Seen on cards older than v0.3.
    #[serde(deserialize_with = "or_default")]
    interfaces: Vec<InterfaceWire>,
    #[serde(deserialize_with = "non_empty")]
    url: Option<String>,
    #[serde(alias = "preferred_transport", deserialize_with = "non_empty")]
    preferred_transport: Option<String>,
    #[serde(alias = "additional_interfaces", deserialize_with = "or_default")]
    additional_interfaces: Vec<InterfaceWire>,
    #[serde(alias = "protocol_version", deserialize_with = "non_empty")]
    protocol_version: Option<String>,
    #[serde(deserialize_with = "optional_object")]
    provider: Option<ProviderWire>,
    #[serde(deserialize_with = "or_default")]
    version: String,
    #[serde(alias = "documentation_url", deserialize_with = "non_empty")]
    documentation_url: Option<String>,
    #[serde(deserialize_with = "optional_object")]
    capabilities: Option<CapabilitiesWire>,
    #[serde(alias = "security_schemes", deserialize_with = "or_default")]
    security_schemes: Schemes,
    #[serde(alias = "security_requirements", deserialize_with = "or_default")]
    security_requirements: Requirements,
    #[serde(deserialize_with = "or_default")]
    security: Requirements,
    #[serde(alias = "default_input_modes", deserialize_with = "or_default")]
    default_input_modes: Vec<String>,
    #[serde(alias = "default_output_modes", deserialize_with = "or_default")]
    default_output_modes: Vec<String>,
    #[serde(deserialize_with = "or_default")]
    skills: Vec<SkillWire>,
    #[serde(deserialize_with = "or_default")]
    signatures: Vec<SignatureWire>,
    #[serde(alias = "icon_url", deserialize_with = "non_empty")]
    icon_url: Option<String>,
    #[serde(alias = "supports_authenticated_extended_card", deserialize_with = "optional_flag")]
    supports_authenticated_extended_card: Option<bool>,
}

impl CardWire {
    fn into_card(self) -> AgentCard {
        let supported_interfaces = self.interfaces();
        let mut capabilities = self.capabilities.map(CapabilitiesWire::into_capabilities).unwrap_or_default();
        capabilities.extended_agent_card =
            capabilities.extended_agent_card.or(self.supports_authenticated_extended_card);
        AgentCard {
            name: self.name,
            description: self.description,
            supported_interfaces,
            provider: self.provider.map(|of| AgentProvider { url: of.url, organization: of.organization }),
            version: self.version,
            documentation_url: self.documentation_url,
            capabilities,
            security_schemes: self.security_schemes.0,
            security_requirements: read_security::either(self.security_requirements, self.security),
            default_input_modes: self.default_input_modes,
            default_output_modes: self.default_output_modes,
            skills: self.skills.into_iter().map(SkillWire::into_skill).collect(),
            signatures: self.signatures.into_iter().map(SignatureWire::into_signature).collect(),
            icon_url: self.icon_url,
        }
    }

    /// A card that lists interfaces is believed; the old members count only where it does not.
    fn interfaces(&self) -> Vec<AgentInterface> {
        if !self.supported_interfaces.is_empty() {
            return self.supported_interfaces.iter().map(|wire| wire.interface("1.0")).collect();
        }
        let old_version = self.protocol_version.as_deref().unwrap_or("0.3");
        let mut interfaces: Vec<AgentInterface> = Vec::new();
        if let Some(url) = &self.url {
            interfaces.push(AgentInterface {
                url: url.clone(),
                protocol_binding: binding(self.preferred_transport.as_deref()),
                tenant: None,
                protocol_version: old_version.to_owned(),
            });
        }
        for wire in self.additional_interfaces.iter().chain(&self.interfaces) {
            let interface = wire.interface(old_version);
            if !interfaces.contains(&interface) {
                interfaces.push(interface);
            }
        }
        interfaces
    }
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct InterfaceWire {
    #[serde(deserialize_with = "or_default")]
    url: String,
    #[serde(alias = "protocol_binding", alias = "transport", alias = "protocol", deserialize_with = "non_empty")]
    protocol_binding: Option<String>,
    #[serde(deserialize_with = "non_empty")]
    tenant: Option<String>,
    #[serde(alias = "protocol_version", alias = "version", deserialize_with = "non_empty")]
    protocol_version: Option<String>,
}

impl InterfaceWire {
    fn interface(&self, version_if_absent: &str) -> AgentInterface {
        AgentInterface {
            url: self.url.clone(),
            protocol_binding: binding(self.protocol_binding.as_deref()),
            tenant: self.tenant.clone(),
            protocol_version: self.protocol_version.clone().unwrap_or_else(|| version_if_absent.to_owned()),
        }
    }
}

/// The name of a binding. Old cards write `json-rpc`, `jsonrpc` or `rest`; names nobody here knows stay as they are.
fn binding(named: Option<&str>) -> String {
    let Some(named) = named else { return "JSONRPC".to_owned() };
    let letters: String = named.chars().filter(char::is_ascii_alphanumeric).collect();
    match letters.to_ascii_lowercase().as_str() {
        "jsonrpc" | "jsonrpc20" => "JSONRPC".to_owned(),
        "httpjson" | "rest" => "HTTP+JSON".to_owned(),
        "grpc" => "GRPC".to_owned(),
        _ => named.to_owned(),
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ProviderWire {
    #[serde(deserialize_with = "or_default")]
    url: String,
    #[serde(deserialize_with = "or_default")]
    organization: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct CapabilitiesWire {
    #[serde(deserialize_with = "optional_flag")]
    streaming: Option<bool>,
    #[serde(alias = "push_notifications", deserialize_with = "optional_flag")]
    push_notifications: Option<bool>,
    #[serde(deserialize_with = "or_default")]
    extensions: Vec<ExtensionWire>,
    #[serde(alias = "extended_agent_card", deserialize_with = "optional_flag")]
    extended_agent_card: Option<bool>,
}

impl CapabilitiesWire {
    fn into_capabilities(self) -> AgentCapabilities {
        AgentCapabilities {
            streaming: self.streaming,
            push_notifications: self.push_notifications,
            extensions: self.extensions.into_iter().map(ExtensionWire::into_extension).collect(),
            extended_agent_card: self.extended_agent_card,
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ExtensionWire {
    #[serde(deserialize_with = "or_default")]
    uri: String,
    #[serde(deserialize_with = "non_empty")]
    description: Option<String>,
    #[serde(deserialize_with = "flag")]
    required: bool,
    params: Option<Metadata>,
}

impl ExtensionWire {
    fn into_extension(self) -> AgentExtension {
        AgentExtension { uri: self.uri, description: self.description, required: self.required, params: self.params }
    }
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct SkillWire {
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
    security_requirements: Requirements,
    #[serde(deserialize_with = "or_default")]
    security: Requirements,
}

impl SkillWire {
    fn into_skill(self) -> AgentSkill {
        AgentSkill {
            id: self.id,
            name: self.name,
            description: self.description,
            tags: self.tags,
            examples: self.examples,
            input_modes: self.input_modes,
            output_modes: self.output_modes,
            security_requirements: read_security::either(self.security_requirements, self.security),
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct SignatureWire {
    #[serde(deserialize_with = "or_default")]
    protected: String,
    #[serde(deserialize_with = "or_default")]
    signature: String,
    header: Option<Json>,
}

impl SignatureWire {
    fn into_signature(self) -> AgentCardSignature {
        AgentCardSignature { protected: self.protected, signature: self.signature, header: self.header }
    }
}
