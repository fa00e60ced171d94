//! Reads any card that real agents publish: v1.0, v0.3, hybrids, and the oldest `interfaces` form.

use serde::Deserialize;

use super::security::SecurityRequirement;
use super::{AgentCard, AgentInterface};
use crate::lenient::{non_empty, object_from_slice, optional_flag, or_default};

impl AgentCard {
    /// Reads a card leniently: the members of v1.0 first, and where one is absent what older versions have instead.
    pub fn decode(json: &[u8]) -> Result<Self, serde_json::Error> {
        let mut card: Self = object_from_slice(json)?;
        let mut old: OldMembers = object_from_slice(json)?;
        let extended_card = &mut card.capabilities.extended_agent_card;
        *extended_card = extended_card.or(old.supports_authenticated_extended_card);
        if card.security_requirements.is_empty() {
            card.security_requirements = std::mem::take(&mut old.security);
        }
        for (skill, old) in card.skills.iter_mut().zip(std::mem::take(&mut old.skills)) {
            if skill.security_requirements.is_empty() {
                skill.security_requirements = old.security;
            }
        }
        card.supported_interfaces = match card.supported_interfaces {
            none if none.is_empty() => old.take_interfaces(),
            listed => listed.into_iter().map(|interface| normalized(interface, "1.0")).collect(),
        };
        Ok(card)
    }
}

/// The members of a card that v1.0 does not have. Hybrid cards say the same under both names.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct OldMembers {
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
    #[serde(deserialize_with = "or_default")]
    security: Vec<SecurityRequirement>,
    #[serde(deserialize_with = "or_default")]
    skills: Vec<OldSkill>,
    #[serde(alias = "supports_authenticated_extended_card", deserialize_with = "optional_flag")]
    supports_authenticated_extended_card: Option<bool>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct OldSkill {
    #[serde(deserialize_with = "or_default")]
    security: Vec<SecurityRequirement>,
}

impl OldMembers {
    /// The interfaces. One without a version has the card's own.
    fn take_interfaces(&mut self) -> Vec<AgentInterface> {
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
