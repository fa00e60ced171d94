//! Takes in a message of a channel: it goes to the conversation's task, or begins one for the agent that the conversation
//! keeps, that `channels.yaml` names, or that routing picks.

use std::sync::Arc;
use std::time::Duration;

use switchboard_a2a::{ContextId, Json, Message, Part, Role, TaskId, Timestamp};
use switchboard_engine::store::lineage::Via;
use switchboard_engine::{
    Address, AgentName, Caller, Error, IncomingMessage, LastOwnTask, RoutingHints, RoutingRequest, TraceContext,
};
use switchboard_host::config::channels::Channels as Settings;

use super::{Binding, Place};
use crate::dispatch::message_id;
use crate::hub::HubState;
use crate::metric_definitions as metric;
use crate::routing::DecidedBy;
use crate::tasks::channel::joined::Origin;
use crate::tasks::channel_plan::{CHANNEL, ChannelPlan};

/// How often a message is routed whose task ends just then.
const TRIES: usize = 3;

/// A message of a channel.
pub(crate) struct ChannelMessage {
    pub(crate) place: Place,
    pub(crate) user: Option<String>,
    pub(crate) parts: Vec<Part>,
    /// The platform's own id.
    pub(crate) id: Option<String>,
    pub(crate) trace: Option<Arc<TraceContext>>,
}

/// Why it is refused.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ChannelError {
    #[error("{0} messages wait in this conversation, and no more may (hub.channels.waiting)")]
    Full(usize),
    #[error(transparent)]
    Engine(#[from] Error),
}

/// Takes a message in, and says to which task and conversation it belongs.
pub(crate) async fn receive(
    hub: &HubState,
    caller: &Caller,
    message: ChannelMessage,
) -> Result<(TaskId, ContextId), ChannelError> {
    let taken = take(hub, caller, message).await;
    let outcome = taken.as_ref().map_or("refused", |(_, outcome)| outcome);
    metrics::counter!(metric::CHANNEL_MESSAGES, "outcome" => outcome).increment(1);
    taken.map(|(submitted, _)| submitted)
}

async fn take(
    hub: &HubState,
    caller: &Caller,
    message: ChannelMessage,
) -> Result<((TaskId, ContextId), &'static str), ChannelError> {
    let place = message.place.clone();
    let incoming = incoming(message);
    let most = hub.parts.config.hub.channels.waiting.get();
    let mut tries = 1;
    loop {
        let decide = |last: Option<LastOwnTask>| plan(hub, caller, &place, &incoming.message, last);
        let routed = hub.engine.route_own(caller, &AgentName::from(CHANNEL), incoming.clone(), decide).await?;
        let waiting = routed.waiting();
        if waiting >= most {
            return Err(ChannelError::Full(waiting));
        }
        let outcome = match routed.task() {
            _ if routed.is_repeated() => "repeated",
            Some(_) => "joined",
            None => "began",
        };
        match hub.engine.send(routed.via(Via::Channel)).await {
            Ok(submitted) => return Ok(((submitted.id().clone(), submitted.context().clone()), outcome)),
            // It has ended since it was routed.
            Err(Error::Unsupported(_)) if outcome == "joined" && tries < TRIES => tries += 1,
            Err(error) => return Err(error.into()),
        }
    }
}

fn incoming(message: ChannelMessage) -> IncomingMessage {
    let ChannelMessage { place, user, parts, id, trace } = message;
    let key = id.as_deref().map(|id| place.key(id));
    let context = place.context();
    let origin = Origin {
        platform: place.platform,
        channel: place.channel,
        thread: place.thread,
        dm: place.is_dm,
        users: user.into_iter().collect(),
        message_ids: id.into_iter().collect(),
    };
    let message = Message {
        message_id: message_id(key.as_deref(), None),
        context_id: Some(context),
        parts,
        metadata: Some(origin.metadata()),
        ..Message::text(Role::User, "")
    };
    IncomingMessage {
        address: Address::Root,
        message,
        accepted_output_modes: Vec::new(),
        metadata: None,
        idempotency_key: key,
        trace,
        push_config: None,
        webhook: None,
        return_immediately: true,
        streaming: false,
    }
}

/// Which agent a new task of the conversation is for, and how.
fn plan(
    hub: &HubState,
    caller: &Caller,
    place: &Place,
    message: &Message,
    last: Option<LastOwnTask>,
) -> Result<Json, Error> {
    let table = hub.channels.table();
    let (binding, settings) = (table.find(place), &hub.parts.config.hub.channels);
    let sticky = binding.and_then(|binding| binding.sticky).unwrap_or(settings.sticky.duration());
    let kept = last.and_then(|last| kept(hub, caller, place, &last, sticky));
    let debounce = debounce(binding, settings);
    let plan = match kept {
        Some((agent, skill)) => ChannelPlan::new(&agent, DecidedBy::Context, skill, debounce),
        None => {
            let hints = RoutingHints {
                skill: binding.and_then(|binding| binding.skill.clone()),
                targets: binding.and_then(|binding| binding.agent.clone()).into_iter().collect(),
                ..RoutingHints::default()
            };
            let asked = RoutingRequest { message, hints: &hints, last_agent: None, last_decision: None };
            let resolved = hub.engine.directory().resolve(&Address::Root, caller, Some(asked)).map_err(unnamed)?;
            let decided = resolved.decision.as_ref().and_then(DecidedBy::of_stored).unwrap_or(DecidedBy::Default);
            // A keyword may stand for a skill.
            let skill = resolved.decision.as_ref().and_then(skill_of).or(hints.skill);
            ChannelPlan::new(&resolved.hosted.name, decided, skill, debounce)
        }
    };
    Json::from_serialize(&plan).map_err(|error| Error::Unsupported(format!("the plan cannot be written: {error}")))
}

/// The agent that a thread keeps, and a direct conversation for a while, as long as it is there and the caller may call it.
fn kept(
    hub: &HubState,
    caller: &Caller,
    place: &Place,
    last: &LastOwnTask,
    sticky: Duration,
) -> Option<(AgentName, Option<String>)> {
    let is_kept = place.thread.is_some() || (place.is_dm && is_within(hub.parts.clock.now(), last.at, sticky));
    if !is_kept {
        return None;
    }
    let plan = ChannelPlan::read(last.decision.as_ref()?)?;
    let agent = plan.target().filter(|agent| caller.scopes.agents.allows(agent) && !agent.is_own())?;
    let is_there = hub.engine.directory().agents().iter().any(|hosted| hosted.name == agent);
    is_there.then_some((agent, plan.skill))
}

fn is_within(now: Timestamp, since: Timestamp, span: Duration) -> bool {
    let passed = u64::try_from(now.0.saturating_sub(since.0)).unwrap_or(0);
    Duration::from_millis(passed) < span
}

/// The quiet that ends a burst, and the longest wait for it, which is no shorter.
fn debounce(binding: Option<&Binding>, settings: &Settings) -> (Duration, Duration) {
    let quiet = binding.and_then(|binding| binding.debounce).unwrap_or(settings.debounce.duration());
    let longest = binding.and_then(|binding| binding.max_debounce).unwrap_or(settings.max_debounce.duration());
    (quiet, longest.max(quiet))
}

fn skill_of(decision: &Json) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Stored {
        skill: Option<String>,
    }
    decision.read::<Stored>().ok()?.skill
}

/// The caller has not named the agent of the channel, and is not told its name.
fn unnamed(error: Error) -> Error {
    match error {
        Error::Forbidden(_) => Error::Forbidden(String::new()),
        other => other,
    }
}
