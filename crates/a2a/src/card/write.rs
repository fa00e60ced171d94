//! Cards as bytes. One set of views serves all forms: each form says which of the two vocabularies it prints.

use serde::Serialize;

use super::write_security::{Requirements, SchemeMap};
use super::{AgentCapabilities, AgentCard, AgentCardSignature, AgentExtension, AgentSkill};
use crate::{Json, Metadata, encode};

/// What a v0.3 card says of its version.
const V03_CARD_VERSION: &str = "0.3.0";

/// Who is to read the card.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CardForm {
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

impl CardForm {
    pub(super) fn has_v1(self) -> bool {
        matches!(self, Self::V1 | Self::Hybrid)
    }

    /// Whether a security scheme is the member of an object. v1.0 and the v0.3 protocol buffers share these.
    pub(super) fn has_scheme_members(self) -> bool {
        self != Self::V03
    }

    pub(super) fn has_v03(self) -> bool {
        self != Self::V1
    }
}

impl AgentCard {
    /// The card as JSON. A hybrid of a card without v0.3 interfaces is the v1.0 card.
    pub fn encode(&self, form: CardForm) -> Vec<u8> {
        let form = match form {
            CardForm::Hybrid if !self.speaks_v03() => CardForm::V1,
            other => other,
        };
        let mut bytes = Vec::with_capacity(2048);
        encode::append(&mut bytes, &view(self, form));
        bytes
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CardView<'a> {
    name: &'a str,
    description: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    protocol_version: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    supported_interfaces: Option<Vec<InterfaceView<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    preferred_transport: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    additional_interfaces: Option<Vec<TransportView<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    provider: Option<ProviderView<'a>>,
    version: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    documentation_url: Option<&'a str>,
    capabilities: CapabilitiesView<'a>,
    #[serde(skip_serializing_if = "SchemeMap::is_empty")]
    security_schemes: SchemeMap<'a>,
    #[serde(skip_serializing_if = "Requirements::is_empty")]
    security_requirements: Requirements<'a>,
    #[serde(skip_serializing_if = "Requirements::is_empty")]
    security: Requirements<'a>,
    default_input_modes: &'a [String],
    default_output_modes: &'a [String],
    skills: Vec<SkillView<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    supports_authenticated_extended_card: Option<bool>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    signatures: Vec<SignatureView<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    icon_url: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct InterfaceView<'a> {
    url: &'a str,
    protocol_binding: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    tenant: Option<&'a str>,
    protocol_version: &'a str,
}

#[derive(Serialize)]
struct TransportView<'a> {
    url: &'a str,
    transport: &'a str,
}

#[derive(Serialize)]
struct ProviderView<'a> {
    url: &'a str,
    organization: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CapabilitiesView<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    streaming: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    push_notifications: Option<bool>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    extensions: Vec<ExtensionView<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    extended_agent_card: Option<bool>,
}

#[derive(Serialize)]
struct ExtensionView<'a> {
    uri: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    /// Never printed as false: signed cards must not hold defaults.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    required: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    params: Option<&'a Metadata>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SkillView<'a> {
    id: &'a str,
    name: &'a str,
    description: &'a str,
    tags: &'a [String],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    examples: &'a [String],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    input_modes: &'a [String],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    output_modes: &'a [String],
    #[serde(skip_serializing_if = "Requirements::is_empty")]
    security_requirements: Requirements<'a>,
    #[serde(skip_serializing_if = "Requirements::is_empty")]
    security: Requirements<'a>,
}

#[derive(Serialize)]
struct SignatureView<'a> {
    protected: &'a str,
    signature: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    header: Option<&'a Json>,
}

fn view(card: &AgentCard, form: CardForm) -> CardView<'_> {
    let interfaces = || card.supported_interfaces.iter();
    let old: Vec<_> = interfaces().filter(|interface| form.has_v03() && interface.is_v03()).collect();
    let first = old.first();
    CardView {
        name: &card.name,
        description: &card.description,
        protocol_version: form.has_v03().then_some(V03_CARD_VERSION),
        supported_interfaces: form.has_v1().then(|| interfaces().map(interface).collect()),
        url: form.has_v03().then(|| first.map_or("", |interface| interface.url.as_str())),
        preferred_transport: form.has_v03().then(|| first.map_or("JSONRPC", |interface| &interface.protocol_binding)),
        additional_interfaces: form.has_v03().then(|| old.iter().map(|interface| transport(interface)).collect()),
        provider: card.provider.as_ref().map(|of| ProviderView { url: &of.url, organization: &of.organization }),
        version: &card.version,
        documentation_url: card.documentation_url.as_deref(),
        capabilities: capabilities(&card.capabilities, form),
        security_schemes: SchemeMap { schemes: &card.security_schemes, form },
        security_requirements: Requirements::v1(&card.security_requirements, form),
        security: Requirements::v03(&card.security_requirements, form),
        default_input_modes: &card.default_input_modes,
        default_output_modes: &card.default_output_modes,
        skills: card.skills.iter().map(|of| skill(of, form)).collect(),
        supports_authenticated_extended_card: form
            .has_v03()
            .then_some(card.capabilities.extended_agent_card == Some(true)),
        // A signature covers the v1.0 form: on a v0.3 card nobody could verify it.
        signatures: card.signatures.iter().filter(|_| form.has_v1()).map(signature).collect(),
        icon_url: card.icon_url.as_deref(),
    }
}

fn interface(interface: &super::AgentInterface) -> InterfaceView<'_> {
    InterfaceView {
        url: &interface.url,
        protocol_binding: &interface.protocol_binding,
        tenant: interface.tenant.as_deref(),
        protocol_version: &interface.protocol_version,
    }
}

fn transport(interface: &super::AgentInterface) -> TransportView<'_> {
    TransportView { url: &interface.url, transport: &interface.protocol_binding }
}

fn capabilities(capabilities: &AgentCapabilities, form: CardForm) -> CapabilitiesView<'_> {
    CapabilitiesView {
        streaming: capabilities.streaming,
        push_notifications: capabilities.push_notifications,
        extensions: capabilities.extensions.iter().map(extension).collect(),
        extended_agent_card: capabilities.extended_agent_card.filter(|_| form.has_v1()),
    }
}

fn extension(extension: &AgentExtension) -> ExtensionView<'_> {
    ExtensionView {
        uri: &extension.uri,
        description: extension.description.as_deref(),
        required: extension.required,
        params: extension.params.as_ref(),
    }
}

fn skill(skill: &AgentSkill, form: CardForm) -> SkillView<'_> {
    SkillView {
        id: &skill.id,
        name: &skill.name,
        description: &skill.description,
        tags: &skill.tags,
        examples: &skill.examples,
        input_modes: &skill.input_modes,
        output_modes: &skill.output_modes,
        security_requirements: Requirements::v1(&skill.security_requirements, form),
        security: Requirements::v03(&skill.security_requirements, form),
    }
}

fn signature(signature: &AgentCardSignature) -> SignatureView<'_> {
    SignatureView {
        protected: &signature.protected,
        signature: &signature.signature,
        header: signature.header.as_ref(),
    }
}
