//! What the agent says of itself.

use a2a::{
    AgentCapabilities, AgentCard, AgentInterface, AgentSkill, TRANSPORT_PROTOCOL_HTTP_JSON, TRANSPORT_PROTOCOL_JSONRPC,
};

/// What it takes and gives: texts, files and data.
const MODES: [&str; 4] = ["text/plain", "image/png", "application/octet-stream", "application/json"];

pub(crate) fn card(address: &str, has_webhooks: bool) -> AgentCard {
    AgentCard {
        name: "Behaviours".to_owned(),
        description: "Does what the first word of a message says".to_owned(),
        version: "1.0.0".to_owned(),
        supported_interfaces: vec![
            AgentInterface::new(format!("{address}/jsonrpc"), TRANSPORT_PROTOCOL_JSONRPC),
            AgentInterface::new(format!("{address}/rest"), TRANSPORT_PROTOCOL_HTTP_JSON),
        ],
        capabilities: AgentCapabilities {
            streaming: Some(true),
            push_notifications: Some(has_webhooks),
            ..AgentCapabilities::default()
        },
        default_input_modes: MODES.map(str::to_owned).into(),
        default_output_modes: MODES.map(str::to_owned).into(),
        skills: vec![AgentSkill {
            id: "behave".to_owned(),
            name: "Behave".to_owned(),
            description: "What is asked for".to_owned(),
            tags: vec!["test".to_owned()],
            examples: None,
            input_modes: None,
            output_modes: None,
            security_requirements: None,
        }],
        provider: None,
        documentation_url: None,
        icon_url: None,
        security_schemes: None,
        security_requirements: None,
        signatures: None,
    }
}
