//! The configured agents as the kernel hosts them.

use switchboard_a2a::PushPayload;
use switchboard_agents::{Echo, Guide, Probe};
use switchboard_engine::{Hosted, Skill, Switches, WebhookEvents};

use crate::config::agents::{self, Agent, Blocking, Builtin, WebhookPayload};

/// The agents of a workspace, in the order of their configuration.
pub(crate) fn hosted(agents: &[Agent]) -> Vec<Hosted> {
    agents.iter().map(host).collect()
}

fn host(agent: &Agent) -> Hosted {
    let name = agent.name.as_str();
    let mut hosted = match agent.builtin {
        Builtin::Echo => Hosted::new(name, Echo),
        Builtin::Guide => Hosted::new(name, Guide),
        Builtin::Probe => Hosted::new(name, Probe),
    };
    if let Some(description) = &agent.description {
        hosted.manifest.description.clone_from(description);
    }
    if !agent.skills.is_empty() {
        hosted.manifest.skills = agent.skills.iter().map(skill).collect();
    }
    hosted.switches(Switches {
        v03_blocking: agent.v03.blocking == Blocking::Block,
        v03_close_on_interrupt: agent.v03.close_on_interrupt,
        close_on_input_required: agent.streams.close_on_input_required,
        dedupe_message_id: agent.dedupe_message_id,
        webhook_payload: agent.webhooks.payload.map(|payload| match payload {
            WebhookPayload::Task => PushPayload::Task,
            WebhookPayload::StatusUpdate => PushPayload::StatusUpdate,
            WebhookPayload::StreamResponse => PushPayload::StreamResponse,
        }),
        webhook_events: match agent.webhooks.events {
            agents::WebhookEvents::All => WebhookEvents::All,
            agents::WebhookEvents::Status => WebhookEvents::Status,
            agents::WebhookEvents::Stops => WebhookEvents::Stops,
        },
    })
}

fn skill(skill: &agents::Skill) -> Skill {
    let mut shown = Skill::new(&skill.name, &skill.name, &skill.description);
    shown.tags.clone_from(&skill.tags);
    shown
}
