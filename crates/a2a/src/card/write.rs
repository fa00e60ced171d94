//! Cards as JSON. One writer serves all forms: each form says which of the two vocabularies it prints.

use serde::ser::{Serialize, SerializeMap, Serializer};

use super::write_security::{SchemesView, requirement_entries};
use super::{AgentCard, AgentSkill};
use crate::write_json::{non_empty_list, optional, to_bytes};

/// What a v0.3 card says of its version.
const V03_CARD_VERSION: &str = "0.3.0";

/// Which protocol versions the readers of a card speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CardFormat {
    /// v1.0 readers only.
    V1,
    /// v0.3 readers only; without a v0.3 interface its `url` is empty, so ask [`AgentCard::speaks_v03`] first.
    V03,
    /// v0.3 readers of the extended card on REST. Some read a security scheme by its `type` and fail without it, others
    /// by the member of the protocol buffer and fail without that, so each scheme has both.
    V03Rest,
    /// Both: every object holds the keys of both versions.
    Hybrid,
}

impl CardFormat {
    pub(super) fn has_v1(self) -> bool {
        matches!(self, Self::V1 | Self::Hybrid)
    }

    pub(super) fn has_v03(self) -> bool {
        self != Self::V1
    }

    /// Whether a security scheme is the member of an object. v1.0 and the v0.3 protocol buffers share these.
    pub(super) fn has_scheme_members(self) -> bool {
        self != Self::V03
    }
}

impl AgentCard {
    /// The card as JSON. A hybrid of a card without v0.3 interfaces is the v1.0 card.
    pub fn encode(&self, form: CardFormat) -> Vec<u8> {
        let form = match form {
            CardFormat::Hybrid if !self.speaks_v03() => CardFormat::V1,
            other => other,
        };
        to_bytes(&CardView { card: self, form })
    }
}

struct CardView<'a> {
    card: &'a AgentCard,
    form: CardFormat,
}

impl Serialize for CardView<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { card, form } = *self;
        let mut capabilities = card.capabilities.clone();
        let has_extended_card = capabilities.extended_agent_card == Some(true);
        capabilities.extended_agent_card = capabilities.extended_agent_card.filter(|_| form.has_v1());
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("name", &card.name)?;
        map.serialize_entry("description", &card.description)?;
        if form.has_v03() {
            map.serialize_entry("protocolVersion", V03_CARD_VERSION)?;
        }
        if form.has_v1() {
            map.serialize_entry("supportedInterfaces", &card.supported_interfaces)?;
        }
        if form.has_v03() {
            v03_interfaces(&mut map, card)?;
        }
        optional(&mut map, "provider", card.provider.as_ref())?;
        map.serialize_entry("version", &card.version)?;
        optional(&mut map, "documentationUrl", card.documentation_url.as_ref())?;
        map.serialize_entry("capabilities", &capabilities)?;
        if !card.security_schemes.is_empty() {
            map.serialize_entry("securitySchemes", &SchemesView { schemes: &card.security_schemes, form })?;
        }
        requirement_entries(&mut map, &card.security_requirements, form)?;
        map.serialize_entry("defaultInputModes", &card.default_input_modes)?;
        map.serialize_entry("defaultOutputModes", &card.default_output_modes)?;
        let skills: Vec<_> = card.skills.iter().map(|skill| SkillView { skill, form }).collect();
        map.serialize_entry("skills", &skills)?;
        if form.has_v03() {
            map.serialize_entry("supportsAuthenticatedExtendedCard", &has_extended_card)?;
        }
        // A signature covers the v1.0 form: a reader of a v0.3 card could not verify it.
        optional(&mut map, "signatures", non_empty_list(&card.signatures).filter(|_| form.has_v1()))?;
        optional(&mut map, "iconUrl", card.icon_url.as_ref())?;
        map.end()
    }
}

/// The v0.3 interfaces: the first as members of the card, and all of them in a list.
fn v03_interfaces<M: SerializeMap>(map: &mut M, card: &AgentCard) -> Result<(), M::Error> {
    #[derive(serde::Serialize)]
    struct Transport<'a> {
        url: &'a str,
        transport: &'a str,
    }
    let interfaces = card.supported_interfaces.iter().filter(|interface| interface.is_v03());
    let transports: Vec<_> = interfaces.map(|of| Transport { url: &of.url, transport: &of.protocol_binding }).collect();
    let (url, transport) = transports.first().map_or(("", "JSONRPC"), |first| (first.url, first.transport));
    map.serialize_entry("url", url)?;
    map.serialize_entry("preferredTransport", transport)?;
    map.serialize_entry("additionalInterfaces", &transports)
}

struct SkillView<'a> {
    skill: &'a AgentSkill,
    form: CardFormat,
}

impl Serialize for SkillView<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let skill = self.skill;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("id", &skill.id)?;
        map.serialize_entry("name", &skill.name)?;
        map.serialize_entry("description", &skill.description)?;
        map.serialize_entry("tags", &skill.tags)?;
        optional(&mut map, "examples", non_empty_list(&skill.examples))?;
        optional(&mut map, "inputModes", non_empty_list(&skill.input_modes))?;
        optional(&mut map, "outputModes", non_empty_list(&skill.output_modes))?;
        requirement_entries(&mut map, &skill.security_requirements, self.form)?;
        map.end()
    }
}
