//! The message that a route sends: routed as any other one at the root, under a key that names route and event. It has the
//! delegation chain of what has triggered it and no parent, so it counts as deep as that and outlives it.

use std::sync::Arc;

use switchboard_a2a::{Json, Message, MessageId, Metadata, Part, Role};
use switchboard_engine::store::lineage::Via;
use switchboard_engine::{Address, CHAIN_KEY, Caller, DelegationChain, Error, IncomingMessage, TraceContext, sha256};

use super::content::{Content, values};
use super::table::Route;
use super::trigger::Trigger;
use crate::dispatch::DispatchHints;
use crate::feed::Item;
use crate::hub::HubState;

/// Where a message says which routes have caused it. The edge drops it from all that callers send.
pub(super) const ROUTES_KEY: &str = "switchboard/routes";

/// Sends the message of a trigger. Sent again, it is the same task.
pub(super) async fn send(
    hub: &HubState,
    owner: &Caller,
    route: &Route,
    hints: DispatchHints,
    trigger: &Trigger,
    chain: Option<&DelegationChain>,
) -> Result<(), Error> {
    let name = &route.definition.name;
    let key = format!("switchboard:route:{name}:{}", trigger.item.id);
    let most = hub.parts.config.hub.routes.content.length();
    let message = Message {
        message_id: message_id(&key),
        context_id: None,
        task_id: None,
        role: Role::User,
        parts: parts(route, &trigger.item, most),
        metadata: Some(metadata(name, trigger, chain)),
        extensions: Vec::new(),
        reference_task_ids: Vec::new(),
    };
    let trace = TraceContext {
        correlation_id: trigger.item.correlation_id.clone(),
        parent_id: trigger.item.source.task_id.as_ref().map(ToString::to_string),
        traceparent: None,
    };
    let incoming = IncomingMessage {
        address: Address::Root,
        message,
        accepted_output_modes: Vec::new(),
        metadata: Json::from_serialize(&hints).ok().and_then(|hints| hints.read().ok()),
        idempotency_key: Some(key),
        trace: (!trace.is_empty()).then(|| Arc::new(trace)),
        push_config: None,
        webhook: None,
        return_immediately: true,
        streaming: false,
    };
    let routed = hub.engine.route(owner, incoming).await?;
    hub.engine.send(routed.via(Via::Route)).await?;
    Ok(())
}

/// The text of the content, or what has happened as a line and as data.
fn parts(route: &Route, item: &Item, most: usize) -> Vec<Part> {
    let name = &route.definition.name;
    if let Some(content) = &route.definition.content {
        return vec![Part::text(text(content, name, item, most))];
    }
    let handed = handed_on(item, most);
    let mut parts = vec![Part::text(format!("{} (route {name})", item.topic))];
    parts.extend(Json::from_serialize(&handed).map(Part::data));
    parts
}

fn text(content: &Content, route: &str, item: &Item, most: usize) -> String {
    let rendered = content.render(&values(route, &handed_on(item, most)), most);
    rendered.as_str().unwrap_or_default().to_owned()
}

/// An item as it is handed on: without its payload if that is too large.
pub(super) fn handed_on(item: &Item, most: usize) -> Item {
    let payload = item.payload.clone().filter(|payload| payload.get().len() <= most);
    Item { payload, ..item.clone() }
}

fn metadata(route: &str, trigger: &Trigger, chain: Option<&DelegationChain>) -> Metadata {
    let mut routes = trigger.routes.clone();
    routes.push(route.to_owned());
    let mut metadata = Metadata::default();
    let mut insert = |key: &str, value: Result<Json, serde_json::Error>| {
        if let Ok(value) = value {
            metadata.insert(key, value);
        }
    };
    insert(ROUTES_KEY, Json::from_serialize(&routes));
    if let Some(chain) = chain {
        insert(CHAIN_KEY, Json::from_serialize(chain));
    }
    metadata
}

/// The id of the message of a key: the same whenever it is sent.
fn message_id(key: &str) -> MessageId {
    let digest = sha256([b"route:".as_slice(), key.as_bytes()]);
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest[..16]);
    MessageId::from(uuid::Builder::from_custom_bytes(bytes).into_uuid().to_string())
}
