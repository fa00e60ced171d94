//! Webhooks: setting one, reading one or all of a task, deleting one, and the one that comes with a message.
//!
//! Where the server has none, each operation says so, as the protocol demands.

use switchboard_a2a::{Dialect, Error, ErrorKind, PushRequest, TaskId, Timestamp};
use switchboard_engine::ids::TaskKey;
use switchboard_engine::store::webhooks::WebhookKey;
use switchboard_engine::{Error as Refusal, Routed};
use switchboard_webhooks::Webhooks;

use super::error::from_engine;
use super::operation::OperationCall;
use super::operation_result::OperationResult;
use super::page_token::PageTokens;

/// How many webhooks a page holds if the caller does not say.
const PAGE_SIZE: u32 = 50;
/// How many are read at once for a caller that knows no pages.
const STEP: usize = 100;
/// What the kernel calls a webhook as a whole where it refuses one.
const WHOLE: &str = "pushNotificationConfig";

/// The task of a request; an empty id, which no task has, if it names none.
pub(super) fn task_of(request: &PushRequest) -> TaskId {
    match request {
        PushRequest::Create(config) => TaskId::from(config.task_id.clone().unwrap_or_default()),
        PushRequest::Get { task_id, .. } | PushRequest::List { task_id, .. } | PushRequest::Delete { task_id, .. } => {
            task_id.clone()
        }
    }
}

/// Performs an operation on a task's webhooks.
pub(super) async fn perform(call: &mut OperationCall<'_>, request: PushRequest) -> Result<OperationResult, Error> {
    let webhooks = offered(call)?;
    let (address, caller, dialect) = (&call.address, &call.identity.caller, call.dialect);
    let task = task_of(&request);
    let found = match request {
        PushRequest::Create(config) => {
            let set = webhooks.set(address, caller, dialect.version(), &task, &config).await;
            Ok(set.map_err(|refusal| ConfigLocation::Request.refusal(dialect, refusal))?)
        }
        PushRequest::Get { id, .. } => webhooks.get(address, caller, &task, id.as_deref()).await,
        PushRequest::List { page_size, page_token, .. } => {
            return list(call, webhooks, &task, page_size, page_token.as_deref()).await;
        }
        PushRequest::Delete { id, .. } => {
            webhooks.delete(address, caller, &task, &id).await.map_err(from_engine)?;
            return Ok(OperationResult::Deleted);
        }
    };
    Ok(OperationResult::PushConfig(Box::new(found.map_err(from_engine)?)))
}

/// A page. JSON-RPC of version 0.3 has no pages: there it is all of them.
async fn list(
    call: &OperationCall<'_>,
    webhooks: &Webhooks,
    task: &TaskId,
    page_size: Option<u32>,
    page_token: Option<&str>,
) -> Result<OperationResult, Error> {
    let (address, caller) = (&call.address, &call.identity.caller);
    let mut after = WebhookKey(0);
    if call.dialect == Dialect::V03Rpc {
        let mut configs = Vec::new();
        loop {
            let (some, next) = webhooks.list(address, caller, task, after, STEP).await.map_err(from_engine)?;
            configs.extend(some);
            let Some(next) = next else { break };
            after = next;
        }
        return Ok(OperationResult::PushConfigs { configs, next_page_token: String::new() });
    }
    let tokens = PageTokens::of_webhooks(call.state.engine.secret(), &caller.id, address, task);
    if let Some(token) = page_token {
        let (_, TaskKey(key)) = tokens.read(token)?;
        after = WebhookKey(key);
    }
    let page_size = usize::try_from(page_size.unwrap_or(PAGE_SIZE)).unwrap_or(usize::MAX);
    let (configs, next) = webhooks.list(address, caller, task, after, page_size).await.map_err(from_engine)?;
    let next_page_token = next.map(|WebhookKey(key)| tokens.write((Timestamp(0), TaskKey(key)))).unwrap_or_default();
    Ok(OperationResult::PushConfigs { configs, next_page_token })
}

/// Prepares the webhook that came with a message to be stored with it. An invalid one makes the message invalid, unless
/// the message is a repeated one: then it was valid, and its webhook is set.
///
/// The message is routed, so the caller is authorized: no host name is resolved for a task of another caller.
pub(super) async fn prepare_inline(call: &OperationCall<'_>, routed: &mut Routed) -> Result<(), Error> {
    let webhooks = offered(call)?;
    let is_repeated = routed.is_repeated();
    let incoming = &mut routed.incoming;
    if let Some(config) = incoming.push_config.as_ref().filter(|_| !is_repeated) {
        let prepared = webhooks.prepare(&call.identity.caller, call.dialect.version(), config).await;
        let refused = |refusal| ConfigLocation::Message.refusal(call.dialect, refusal);
        incoming.webhook = Some(prepared.map_err(refused)?);
    }
    Ok(())
}

/// Where a request holds a webhook.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ConfigLocation {
    Request,
    Message,
}

impl ConfigLocation {
    /// The error, with the field names of the caller's dialect.
    fn refusal(self, dialect: Dialect, refusal: Refusal) -> Error {
        match refusal {
            Refusal::Invalid { field, problem } => Error::invalid_field(self.field(dialect, field), problem),
            other => from_engine(other),
        }
    }

    fn field(self, dialect: Dialect, field: &str) -> String {
        let whole = match (dialect, self) {
            (Dialect::V1, Self::Request) => "taskPushNotificationConfig",
            (Dialect::V1, Self::Message) => "configuration.taskPushNotificationConfig",
            (Dialect::V03Rpc, Self::Message) => "configuration.pushNotificationConfig",
            (Dialect::V03Rest, Self::Message) => "configuration.pushNotification",
            (Dialect::V03Rpc | Dialect::V03Rest, Self::Request) => "pushNotificationConfig",
        };
        match (field, dialect) {
            (WHOLE, _) => whole.to_owned(),
            // Only this request is the configuration itself.
            (field, Dialect::V1) if self == Self::Request => field.to_owned(),
            ("authentication.scheme", Dialect::V03Rpc | Dialect::V03Rest) => format!("{whole}.authentication.schemes"),
            (field, _) => format!("{whole}.{field}"),
        }
    }
}

/// The error of a message that the kernel refuses, perhaps because of its webhook.
pub(super) fn refused_message(dialect: Dialect, refusal: Refusal) -> Error {
    match &refusal {
        Refusal::Invalid { field, .. } if *field == WHOLE => ConfigLocation::Message.refusal(dialect, refusal),
        _ => from_engine(refusal),
    }
}

fn offered<'a>(call: &OperationCall<'a>) -> Result<&'a Webhooks, Error> {
    call.state.webhooks().ok_or_else(|| Error::new(ErrorKind::PushNotSupported))
}
