//! What is said of a remote agent here: what its own card says, with what the configuration adds.

use switchboard_a2a::card::{AgentCard, AgentExtension};
use switchboard_a2a::extension::{IDEMPOTENCY, RESUMPTION};
use switchboard_engine::{Execution, Manifest, Park, Replies, Start};
use switchboard_fleet::config::remote_agent::RemoteAgent;
use switchboard_fleet::config::remote_serving::RemoteReplies;
use switchboard_fleet::declare_effects;

use crate::registry::reconcile;

/// The manifest of a remote agent, by its card as it was last known. Streaming and extensions follow the card.
pub fn manifest(agent: &RemoteAgent, card: Option<&AgentCard>) -> Manifest {
    let name = card.map(|card| card.name.as_str()).filter(|name| !name.is_empty());
    let own = card.map(|card| card.description.clone()).filter(|own| !own.is_empty());
    let own = own.unwrap_or_else(|| "An agent of another server".to_owned());
    let description = agent.serving.description.clone().unwrap_or(own);
    let mut manifest = Manifest::new(name.unwrap_or(agent.name.as_str()), description);
    // It saves what it is about to send, and waits for that, before anything leaves this server.
    manifest.start = Start::WithCommit;
    manifest.park = Park::Allowed;
    manifest.execution = Execution::Remote;
    manifest.replies = match agent.serving.replies {
        RemoteReplies::Task => Replies::Task,
        RemoteReplies::Either => Replies::Either,
    };
    manifest.skills = reconcile(agent, card).into_iter().map(|(skill, _)| skill).collect();
    manifest.streaming = agent.serving.streaming;
    let Some(card) = card else {
        declare_effects(&mut manifest);
        return manifest;
    };
    manifest.streaming = card.capabilities.streaming.unwrap_or(false);
    manifest.extensions = extensions(card);
    declare_effects(&mut manifest);
    if !card.version.is_empty() {
        manifest.version.clone_from(&card.version);
    }
    for (modes, shown) in [
        (&card.default_input_modes, &mut manifest.input_modes),
        (&card.default_output_modes, &mut manifest.output_modes),
    ] {
        if !modes.is_empty() {
            shown.clone_from(modes);
        }
    }
    manifest.provider.clone_from(&card.provider);
    manifest.documentation_url.clone_from(&card.documentation_url);
    manifest.icon_url.clone_from(&card.icon_url);
    manifest
}

/// Those of its card, each once: a server may repeat what one behind it has said. Whether streams can be resumed and keys
/// count is said of this server, to callers who need not know that of the agent.
fn extensions(card: &AgentCard) -> Vec<AgentExtension> {
    let mut unique: Vec<AgentExtension> = Vec::new();
    for extension in &card.capabilities.extensions {
        if unique.iter().all(|known| known.uri != extension.uri) {
            let is_own = [RESUMPTION, IDEMPOTENCY].contains(&extension.uri.as_str());
            unique.push(AgentExtension { required: extension.required && !is_own, ..extension.clone() });
        }
    }
    unique
}
