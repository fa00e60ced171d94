//! The configured agents as the kernel hosts them.

use switchboard_a2a::PushPayload;
use switchboard_a2a::extension::effect_domain::{self, Effect};
use switchboard_engine::{Hosted, Manifest, Served, Skill, Switches, WebhookEvents};
use switchboard_host::StartError;
use switchboard_host::demo::{Echo, Guide, Probe};
use switchboard_host::serve::{Fleet, FleetFactory, ServerParts};

use crate::config::agents::{self, Agent, Blocking, Builtin, BuiltinAgent, Kind, WebhookPayload};
use crate::config::delegation::delegation;
use crate::config::skill;
use crate::output_schema::with_output_schemas;
use crate::programs::Programs;

/// The agents of a workspace, in the order of their configuration.
pub fn configured(agents: Vec<Agent>) -> FleetFactory {
    Box::new(move |parts| Box::pin(std::future::ready(fleet(&agents, &parts))))
}

fn fleet(agents: &[Agent], parts: &ServerParts) -> Result<Fleet, StartError> {
    // Even if no agent starts programs any more: an earlier server may have left orphans.
    let programs = Programs::open(parts)?;
    let host = |agent: &Agent| Ok(Hosted::serving(agent.name.as_str(), served(agent, &programs)?));
    let hosted = agents.iter().map(host).collect::<Result<_, StartError>>()?;
    Ok(Fleet { hosted, lifecycles: vec![Box::new(programs)], ..Fleet::default() })
}

/// An agent as its configuration says.
pub fn served(agent: &Agent, programs: &Programs) -> Result<Served, StartError> {
    let name = agent.name.as_str();
    let mut served = match &agent.kind {
        Kind::Builtin(BuiltinAgent { builtin: Builtin::Echo }) => Served::new(Echo),
        Kind::Builtin(BuiltinAgent { builtin: Builtin::Guide }) => Served::new(Guide),
        Kind::Builtin(BuiltinAgent { builtin: Builtin::Probe }) => Served::new(Probe),
        Kind::Cli(cli) => Served::new(programs.add(name, cli)?),
    };
    let max_running = match &agent.kind {
        Kind::Builtin(_) => None,
        Kind::Cli(cli) => Some(cli.max_parallel.get()),
    };
    if let Some(description) = &agent.description {
        served.manifest.description.clone_from(description);
    }
    if !agent.skills.is_empty() {
        served.manifest.skills = agent.skills.iter().map(skill).collect();
        declare_effects(&mut served.manifest);
    }
    let switches = Switches {
        v03_blocking: agent.v03.blocking == Blocking::Block,
        v03_close_on_interrupt: agent.v03.close_on_interrupt,
        v03_rest_files: agent.v03.rest_files.into(),
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
        max_running,
        delegation: delegation(&agent.delegates, &agent.delegation),
    };
    Ok(with_output_schemas(served.switches(switches)))
}

/// A skill as its configuration says.
pub fn skill(skill: &skill::Skill) -> Skill {
    let mut shown = Skill::new(&skill.name, &skill.name, &skill.description);
    shown.tags.clone_from(&skill.tags);
    shown.keywords.clone_from(&skill.keywords);
    let effects = skill.effects.iter().map(|effect| Effect {
        domain: effect.domain.clone(),
        path: effect.path.clone(),
        delta: effect.delta.0,
        confidence: effect.confidence.0,
    });
    shown.effects = effects.collect();
    shown.output_schema = skill.output_schema.as_ref().map(|output| output.schema.clone());
    shown
}

/// Has the card declare the effects of its skills, in place of what it has declared before.
pub fn declare_effects(manifest: &mut Manifest) {
    let declaring = manifest.skills.iter().filter(|skill| !skill.effects.is_empty());
    let effects = declaring.map(|skill| (skill.id.clone(), skill.effects.clone())).collect();
    manifest.extensions.retain(|extension| extension.uri != effect_domain::URI);
    if !std::collections::BTreeMap::is_empty(&effects) {
        manifest.extensions.push(effect_domain::extension(&effects));
    }
}
