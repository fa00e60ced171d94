//! The message of a run: sent as the owner, under a key that names ceremony and time, so that a time has one task however often
//! it is sent. All runs of a ceremony are one conversation.

use switchboard_a2a::{ContextId, Json, Message, MessageId, Part, Role, TaskId, Timestamp};
use switchboard_engine::clock::later;
use switchboard_engine::store::IdempotencyScope;
use switchboard_engine::store::lineage::Via;
use switchboard_engine::{Address, Caller, Error, IncomingMessage, sha256};

use serde_json::json;

use super::definition::{Definition, VALUES};
use super::{Ceremony, context_of};
use crate::dispatch::DispatchHints;
use crate::hub::HubState;
use crate::routes::{Room, Template};

/// The longest text that is made of content: values are short.
const MOST: usize = 64 << 10;

/// The key of the run of a time.
pub(super) fn key_of(id: &str, at: Timestamp) -> String {
    format!("switchboard:ceremony:{id}:{at}")
}

/// Sends the message of a run. Sent again under its key, it is the same task.
pub(super) async fn send(
    hub: &HubState,
    owner: &Caller,
    ceremony: &Ceremony,
    at: Timestamp,
    key: String,
) -> Result<TaskId, Error> {
    let definition = &ceremony.definition;
    let hints = DispatchHints {
        skill: definition.skill.as_deref().map(str::to_owned),
        targets: definition.asked_targets(),
        fanout: definition.fanout.as_deref().map(str::to_owned),
        ..DispatchHints::default()
    };
    let message = Message {
        message_id: message_id(&key),
        context_id: Some(ContextId::from(context_of(&definition.id))),
        task_id: None,
        role: Role::User,
        parts: vec![Part::text(text(definition, at))],
        metadata: None,
        extensions: Vec::new(),
        reference_task_ids: Vec::new(),
    };
    let incoming = IncomingMessage {
        address: Address::Root,
        message,
        accepted_output_modes: Vec::new(),
        metadata: Json::from_serialize(&hints).ok().and_then(|hints| hints.read().ok()),
        idempotency_key: Some(key.clone()),
        trace: None,
        push_config: None,
        webhook: None,
        return_immediately: true,
        streaming: false,
    };
    let sent = match hub.engine.route(owner, incoming).await {
        Ok(mut routed) => {
            // An agent may take a message of a conversation for the answer to what it has asked there. Nobody has looked at the
            // question here.
            if routed.task().is_some() && !routed.is_repeated() {
                let problem = "would answer what an earlier run has asked: answer that first, or say it in other words";
                return Err(Error::Invalid { field: "content", problem: problem.to_owned() });
            }
            routed.deadline = Some(later(hub.parts.clock.now(), definition.timeout()));
            hub.engine.send(routed.via(Via::Cron)).await
        }
        Err(error) => Err(error),
    };
    match sent {
        Ok(submitted) => Ok(submitted.id().clone()),
        // Under its key something was sent before, by what the ceremony said then.
        Err(Error::KeyReused | Error::MessageIdReused(_)) => {
            let scope = IdempotencyScope { owner: owner.id.clone(), address: Address::Root.as_str().to_owned(), key };
            let found = hub.parts.store.find_send(scope).await?.and_then(|record| record.task);
            found.ok_or(Error::KeyReused)
        }
        Err(error) => Err(error),
    }
}

/// The text of a run's message.
fn text(definition: &Definition, at: Timestamp) -> String {
    let Some(content) = definition.content.as_deref() else {
        let skill = definition.skill.as_deref().map(|skill| format!(" of {skill}")).unwrap_or_default();
        return format!("Scheduled run{skill}: {}, {at}", definition.title());
    };
    let values = json!({ "id": definition.id, "name": definition.title(), "scheduledAt": at });
    match Template::parse(content, &VALUES) {
        Ok(template) => template.render(&values, &mut Room(MOST)),
        // It was read as one before.
        Err(_) => content.to_owned(),
    }
}

/// The id of the message of a key: the same whenever it is sent.
fn message_id(key: &str) -> MessageId {
    let digest = sha256([b"ceremony:".as_slice(), key.as_bytes()]);
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest[..16]);
    MessageId::from(uuid::Builder::from_custom_bytes(bytes).into_uuid().to_string())
}
