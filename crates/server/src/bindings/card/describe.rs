//! The content of an agent card: the agent's manifest, its interfaces, and the server's capabilities.

use switchboard_a2a::card::{
    AgentCapabilities, AgentCard, AgentExtension, AgentInterface, AgentSkill, SecurityRequirement, SecurityScheme,
};
use switchboard_a2a::extension::{IDEMPOTENCY, RESUMPTION};
use switchboard_engine::{Address, Served, Skill};

use crate::{Options, State};

/// The card of one agent at an address. Private skills are for authenticated callers.
pub(in crate::bindings) fn agent(state: &State, address: &Address, served: &Served, with_private: bool) -> AgentCard {
    let (options, manifest) = (&state.options, &served.manifest);
    let extension = |uri: &str, description: &str| AgentExtension {
        uri: uri.to_owned(),
        description: Some(description.to_owned()),
        required: false,
        params: None,
    };
    // Those two are this server's to offer, whatever an agent elsewhere says of its own.
    let is_own = |extension: &&AgentExtension| ![RESUMPTION, IDEMPOTENCY].contains(&extension.uri.as_str());
    let own = manifest.extensions.iter().filter(is_own).cloned();
    let resumption = extension(RESUMPTION, "Last-Event-ID on a stream goes on exactly after that event");
    let once = "A message with an Idempotency-Key is acted on once, however often it arrives";
    let common = manifest.streaming.then_some(resumption).into_iter().chain([extension(IDEMPOTENCY, once)]);
    let skills = manifest.skills.iter().filter(|skill| with_private || !skill.private);
    let mut card = AgentCard {
        name: manifest.name.clone(),
        description: manifest.description.clone(),
        version: manifest.version.clone(),
        default_input_modes: manifest.input_modes.clone(),
        default_output_modes: manifest.output_modes.clone(),
        skills: skills.map(described).collect(),
        provider: manifest.provider.clone(),
        documentation_url: manifest.documentation_url.clone(),
        icon_url: manifest.icon_url.clone(),
        supported_interfaces: interfaces(options, address),
        capabilities: AgentCapabilities {
            streaming: Some(manifest.streaming),
            push_notifications: Some(state.webhooks().is_some()),
            extensions: own.chain(common).collect(),
            // It is for callers with a key, and an open server has none.
            extended_agent_card: Some(!options.open),
        },
        ..AgentCard::default()
    };
    if !options.open {
        let bearer = SecurityScheme::Http { scheme: "Bearer".to_owned(), bearer_format: None, description: None };
        let key =
            SecurityScheme::ApiKey { location: "header".to_owned(), name: "X-API-Key".to_owned(), description: None };
        card.security_schemes = vec![("bearer".to_owned(), bearer), ("apiKey".to_owned(), key)];
        card.security_requirements =
            ["bearer", "apiKey"].map(|name| SecurityRequirement(vec![(name.to_owned(), Vec::new())])).to_vec();
    }
    card
}

/// Newest version first. v0.3 does not let two transports share one address, so its JSON-RPC has one of its own.
fn interfaces(options: &Options, address: &Address) -> Vec<AgentInterface> {
    let base = options.public_base_url.trim_end_matches('/');
    let url = match address {
        Address::Root => format!("{base}/a2a"),
        Address::Agent(name) => format!("{base}/a2a/{name}"),
    };
    let rpc = format!("{url}/jsonrpc");
    let interface = |url: &str, binding: &str, version: &str| AgentInterface {
        url: url.to_owned(),
        protocol_binding: binding.to_owned(),
        tenant: None,
        protocol_version: version.to_owned(),
    };
    vec![
        interface(&url, "JSONRPC", "1.0"),
        interface(&url, "HTTP+JSON", "1.0"),
        interface(&rpc, "JSONRPC", "0.3"),
        interface(&url, "HTTP+JSON", "0.3"),
    ]
}

fn described(skill: &Skill) -> AgentSkill {
    AgentSkill {
        id: skill.id.clone(),
        name: skill.name.clone(),
        description: skill.description.clone(),
        tags: skill.tags.clone(),
        examples: skill.examples.clone(),
        input_modes: skill.input_modes.clone(),
        output_modes: skill.output_modes.clone(),
        ..AgentSkill::default()
    }
}
