//! The request of a turn to its remote agent. It is the same bytes however often it is made: an agent that recognises a
//! repetition refuses one that differs.

use switchboard_a2a::card::{AgentCard, AgentExtension};
use switchboard_a2a::extension::trace::{self, Trace};
use switchboard_a2a::extension::{is_known, stamp_request};
use switchboard_a2a::{
    AuthenticationInfo, Json, Message, MessageId, Metadata, PushConfig, Role, SendConfiguration, SendRequest, TaskId,
};
use switchboard_client::CallContext;
use switchboard_engine::{CHAIN_KEY, DelegationChain, RoutingHints, Turn, sha256};
use uuid::Uuid;

use super::saved::Sending;

/// What a request is made of beside the turn.
pub(super) struct Outgoing<'a> {
    /// The task here.
    pub(super) task: &'a TaskId,
    pub(super) sending: &'a Sending,
    /// The token for push notifications.
    pub(super) token: Option<String>,
}

/// Where a call to a remote agent comes from: the tree that its task is in.
pub(super) struct CallOrigin {
    /// The root's id.
    pub(super) root: String,
    /// The agent that calls, if it is one.
    pub(super) caller: Option<String>,
}

impl CallOrigin {
    /// By the delegation chain of what the task calls; of its own server only, since the rest is claimed.
    pub(super) fn of(task: &TaskId, chain: Option<&DelegationChain>) -> Self {
        let hops = chain.map_or(&[][..], |chain| chain.hops.as_slice());
        let own = hops.last().map(|hop| hop.node.as_str());
        let root =
            hops.iter().find(|hop| Some(hop.node.as_str()) == own).map_or(task.as_str(), |hop| hop.task.as_str());
        let caller = hops.len().checked_sub(2).and_then(|index| hops.get(index)).map(|hop| hop.agent.clone());
        Self { root: root.to_owned(), caller }
    }
}

/// The id of a message there: ids of two callers here may be the same.
pub(super) fn message_id(task: &TaskId, turn: u64) -> MessageId {
    let digest = sha256([b"message:".as_slice(), task.as_str().as_bytes(), b":", turn.to_string().as_bytes()]);
    let bytes = beginning(digest).to_be_bytes();
    MessageId::from(uuid::Builder::from_custom_bytes(bytes).into_uuid().to_string())
}

/// The idempotency key of a message.
pub(super) fn key(task: &TaskId, turn: u64) -> String {
    format!("{task}:{turn}")
}

/// Tracing and idempotency of a turn's calls. Everything under one root has one trace, whether its caller has begun one or
/// not.
pub(super) fn call_context(task: &TaskId, turn: &Turn, origin: &CallOrigin) -> CallContext {
    let trace = turn.trace.as_deref();
    let correlation_id = trace.and_then(|trace| trace.correlation_id.clone());
    let traceparent = trace.and_then(|trace| trace.traceparent.as_ref()).map(|trace| trace.as_str().to_owned());
    CallContext {
        correlation_id: Some(correlation_id.unwrap_or_else(|| origin.root.clone())),
        parent_id: Some(task.to_string()),
        traceparent: Some(traceparent.unwrap_or_else(|| own_traceparent(&origin.root, task))),
        idempotency_key: Some(key(task, turn.seq.0)),
        sends_once: true,
        ..CallContext::default()
    }
}

/// The trace of a root that came without one. It follows from ids, so that it is the same in every process.
fn own_traceparent(root: &str, task: &TaskId) -> String {
    let trace = beginning(sha256([b"trace:".as_slice(), root.as_bytes()]));
    let span = beginning(sha256([b"span:".as_slice(), task.as_str().as_bytes()])) >> 64;
    format!("00-{trace:032x}-{span:016x}-01")
}

/// The first half of a hash, as one number.
fn beginning(hash: [u8; 32]) -> u128 {
    hash[..16].iter().fold(0, |number, byte| number << 8 | u128::from(*byte))
}

/// The extensions to declare at an agent for a turn: those of every call, those that its caller has declared, and those of
/// the message.
pub(super) fn extensions(offered: &[AgentExtension], turn: &Turn) -> Vec<String> {
    let of_turn = |uri: &String| turn.extensions.contains(uri) || turn.message.extensions.contains(uri);
    offered.iter().filter(|offered| is_always_declared(offered) || of_turn(&offered.uri)).map(uri).collect()
}

/// The same for a call that belongs to no turn.
pub(super) fn extensions_of_any_call(offered: &[AgentExtension]) -> Vec<String> {
    offered.iter().filter(|offered| is_always_declared(offered)).map(uri).collect()
}

/// One that the agent requires, which its callers here had to declare, or that is known.
fn is_always_declared(offered: &AgentExtension) -> bool {
    offered.required || is_known(&offered.uri)
}

fn uri(extension: &AgentExtension) -> String {
    extension.uri.clone()
}

/// What the extensions of a card expect in the request.
pub(super) fn stamps(card: Option<&AgentCard>, turn: &Turn) -> Metadata {
    let mut stamps = Metadata::default();
    if let (Some(card), Some(skill)) = (card, turn.skill()) {
        stamp_request(card, skill, &mut stamps);
    }
    stamps
}

pub(super) fn request(turn: &Turn, context: &CallContext, origin: &CallOrigin, to: Outgoing<'_>) -> SendRequest {
    let Outgoing { task, sending, token } = to;
    // At the agent's own address these are the agent's to read.
    let as_routed = |metadata: Option<Metadata>| match turn.routing {
        Some(_) => RoutingHints::without_followed(metadata),
        None => metadata,
    };
    let mut metadata = as_routed(turn.message.metadata.clone()).unwrap_or_default();
    // What the caller has sent of it is in it.
    if let Some(chain) = &sending.chain {
        metadata.insert(CHAIN_KEY, chain.clone());
    }
    let known = context.traceparent.as_deref().and_then(Trace::from_traceparent);
    if known.as_ref().is_some_and(|known| !tells(&metadata, known)) {
        metadata.remove(trace::KEY);
        metadata.remove(trace::URI);
    }
    let answered = sending.answers.as_ref();
    let message = Message {
        message_id: message_id(task, turn.seq.0),
        context_id: answered.map(|answered| answered.context.clone()).or_else(|| sending.context.clone()),
        task_id: answered.map(|answered| answered.task.clone()),
        role: Role::User,
        metadata: (!metadata.is_empty()).then_some(metadata),
        // Tasks of this server mean nothing there.
        reference_task_ids: Vec::new(),
        ..turn.message.clone()
    };
    let push = sending.callback.clone().zip(token).map(|(url, token)| PushConfig {
        tenant: None,
        id: Some("switchboard".to_owned()),
        task_id: None,
        url,
        token: Some(token.clone()),
        authentication: Some(AuthenticationInfo { scheme: "Bearer".to_owned(), credentials: Some(token) }),
        payload: None,
    });
    let configuration = SendConfiguration {
        accepted_output_modes: turn.accepted_output_modes.clone(),
        task_push_notification_config: push,
        history_length: None,
        return_immediately: true,
    };
    let mut metadata = as_routed(turn.metadata.clone()).unwrap_or_default();
    let skill = turn.skill();
    add(&mut metadata, "skill", skill);
    add(&mut metadata, "skillHint", skill);
    add(&mut metadata, "correlationId", context.correlation_id.as_deref());
    add(&mut metadata, "parentId", Some(task.as_str()));
    let absent: Vec<_> = sending.stamps.iter().filter(|(key, _)| metadata.get(key).is_none()).collect();
    for (key, stamp) in absent {
        metadata.insert(key, stamp.clone());
    }
    if let Some(known) = known.filter(|known| !tells(&metadata, known)) {
        metadata.remove(trace::URI);
        let skill = skill.map(str::to_owned);
        Trace { caller_agent: origin.caller.clone(), skill, ..known }.write_to(&mut metadata);
    }
    SendRequest { tenant: None, message, configuration: Some(configuration), metadata: Some(metadata) }
}

/// Whether metadata tell of this trace; a caller may have told another one, which a header of its request has overruled.
fn tells(metadata: &Metadata, known: &Trace) -> bool {
    let told = metadata.get(trace::KEY).and_then(|_| Trace::in_metadata(Some(metadata))?.traceparent());
    told.and_then(|told| Trace::from_traceparent(&told)).is_some_and(|told| told.trace_id == known.trace_id)
}

fn add(metadata: &mut Metadata, key: &str, value: Option<&str>) {
    if metadata.get(key).is_none()
        && let Some(value) = value.and_then(|value| Json::from_serialize(value).ok())
    {
        metadata.insert(key, value);
    }
}

/// A number between 0.8 and 1.2 that differs between tasks, so that they do not all look at once.
pub(super) fn spread() -> f64 {
    0.8 + 0.4 * f64::from(Uuid::new_v4().as_bytes()[0]) / 255.0
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use switchboard_a2a::extension::Payload;
    use switchboard_a2a::extension::cost::Cost;
    use switchboard_engine::{Cause, Seq};

    use super::*;

    fn metadata(value: serde_json::Value) -> Metadata {
        serde_json::from_str(&value.to_string()).unwrap()
    }

    fn turn() -> Turn {
        let sent = || metadata(json!({ "targets": ["reviewer"], "fanout": "all", "force": true, "repo": "r" }));
        Turn {
            message: Message { metadata: Some(sent()), ..Message::text(Role::User, "go") },
            seq: Seq(1),
            began: Seq(1),
            cause: Cause::Begin,
            saved: None,
            was_stopped: false,
            caller: "ann".into(),
            by: None,
            verdict: None,
            accepted_output_modes: Vec::new(),
            metadata: Some(sent()),
            trace: None,
            extensions: Vec::new(),
            hints: RoutingHints { skill: Some("review".to_owned()), ..Default::default() },
            routing: None,
            answered: None,
            decision: None,
            approved: Default::default(),
        }
    }

    fn sent(turn: &Turn, sending: &Sending) -> SendRequest {
        let task = TaskId::from("here");
        let origin = CallOrigin::of(&task, None);
        let context = call_context(&task, turn, &origin);
        request(turn, &context, &origin, Outgoing { task: &task, sending, token: Some("secret".to_owned()) })
    }

    #[test]
    fn names_of_agents_here_stay_here_once_they_have_routed_the_message() {
        let direct = sent(&turn(), &Sending::default());
        let routed = Turn { routing: Some(Json::parse(r#"{"by": "targets"}"#).unwrap()), ..turn() };
        let routed = sent(&routed, &Sending::default());
        for key in ["targets", "fanout", "force", "repo"] {
            for (request, is_kept) in [(&direct, true), (&routed, key == "repo")] {
                let metadata = [&request.metadata, &request.message.metadata];
                let kept =
                    metadata.map(|metadata| metadata.as_ref().is_some_and(|metadata| metadata.get(key).is_some()));
                assert_eq!(kept, [is_kept; 2], "{key}");
            }
        }
    }

    #[test]
    fn one_trace_goes_out_whatever_the_caller_has_told_beside_it() {
        let (task, headers) = (TaskId::from("here"), "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
        let same = "0AF76519-16cd-43dd-8448-eb211c80319c";
        let other = "4bf92f3577b34da6a3ce929d0e0e4736";
        let written = "0af7651916cd43dd8448eb211c80319c";
        for (told, expected) in [
            (json!({}), written),
            (json!({ "a2a.trace": { "traceId": same, "spanId": "00f067aa0ba902b7" } }), same),
            (json!({ "a2a.trace": { "traceId": other, "spanId": "00f067aa0ba902b7" } }), written),
            (json!({ "a2a.trace": { "traceId": "t" } }), written),
            (json!({ trace::URI: { "traceId": other, "spanId": "00f067aa0ba902b7" } }), written),
        ] {
            let said = Message { metadata: Some(metadata(told.clone())), ..Message::text(Role::User, "go") };
            let turn = Turn { message: said, metadata: Some(metadata(told.clone())), ..turn() };
            let origin = CallOrigin::of(&task, None);
            let context = CallContext { traceparent: Some(headers.into()), ..call_context(&task, &turn, &origin) };
            let to = Outgoing { task: &task, sending: &Sending::default(), token: None };
            let sent = request(&turn, &context, &origin, to);
            let of_message = Trace::in_metadata(sent.message.metadata.as_ref()).map(|told| told.trace_id);
            let of_request = sent.metadata.unwrap();
            assert_eq!(Trace::in_metadata(Some(&of_request)).unwrap().trace_id, expected, "{told}");
            assert!(of_request.get(trace::URI).is_none(), "{told}");
            assert_eq!(of_message.as_deref(), Some(same).filter(|same| *same == expected), "{told}");
        }
    }

    #[test]
    fn a_request_is_made_of_what_was_saved() {
        let card = json!({
            "name": "far", "description": "", "version": "1", "supportedInterfaces": [], "skills": [],
            "defaultInputModes": [], "defaultOutputModes": [],
            "capabilities": {"extensions": [
                {"uri": Cost::URI}, {"uri": "urn:needed", "required": true}, {"uri": "urn:other"},
            ]},
        });
        let card = AgentCard::decode(card.to_string().as_bytes()).unwrap();
        let turn = turn();
        let offered = &card.capabilities.extensions;
        assert_eq!(extensions(offered, &turn), [Cost::URI, "urn:needed"]);
        let declaring = Turn { extensions: vec!["urn:other".to_owned()], ..turn.clone() };
        assert_eq!(extensions(offered, &declaring), [Cost::URI, "urn:needed", "urn:other"]);
        let sending = Sending {
            context: Some("there".into()),
            callback: Some("https://public.test/callback".to_owned()),
            stamps: stamps(Some(&card), &turn),
            ..Sending::default()
        };
        let saved: Sending = serde_json::from_str(&serde_json::to_string(&sending).unwrap()).unwrap();
        let [first, again] = [&sending, &saved].map(|sending| sent(&turn, sending));
        assert_eq!(first.message, again.message);
        let stamp = |request: &SendRequest| request.metadata.as_ref().unwrap().get("x-cost-skill").unwrap().as_text();
        assert_eq!((stamp(&first), stamp(&again)), (Some("review".to_owned()), Some("review".to_owned())));
        assert_eq!(first.message.context_id, Some("there".into()));
        let push = first.configuration.unwrap().task_push_notification_config.unwrap();
        assert_eq!(push.url, "https://public.test/callback");
    }
}
