//! Blocking send: sending a message and waiting for one answer. Streaming shares parts of it.

use bytes::Bytes;
use serde::Deserialize;
use serde::de::IgnoredAny;
use switchboard_a2a::{Error, Message, Metadata, SendRequest, Version};
use switchboard_engine::{IncomingMessage, Routed, SendResult, Submitted};

use super::error::from_engine;
use super::operation::OperationCall;
use super::operation_result::{OperationResult, TaskContent, TaskResult};
use super::{idempotency_key, limits, push, trace_headers};

/// How the metadata keys begin that only the kernel and agents write.
const OWN_METADATA: &str = "switchboard/";

/// The task or the direct reply.
pub(super) async fn perform(call: &mut OperationCall<'_>, request: SendRequest) -> Result<OperationResult, Error> {
    let history_length = request.configuration.as_ref().and_then(|configuration| configuration.history_length);
    let mut routed = route(call, request).await?;
    let return_immediately = returns_immediately(call, &routed.incoming);
    routed.incoming.return_immediately = return_immediately;
    call.json = Bytes::new();
    let (submitted, answer) = if return_immediately {
        let submitted = submit(call, routed).await?;
        let now = submitted.now().await;
        (submitted, now)
    } else {
        prepare(call, &mut routed).await?;
        let answered = call.state.engine.send_and_wait(routed).await;
        answered.map_err(|refusal| push::refused_message(call.dialect, refusal))?
    };
    Ok(match answer {
        SendResult::Task(reading) => {
            let content = TaskContent::Read(reading);
            OperationResult::Task(TaskResult { id: submitted.id().clone(), history_length, content })
        }
        SendResult::Message(message) => OperationResult::Message(Box::new(message)),
    })
}

/// Drops what only the server may say, such as why a task ended: readers trust those keys. They are not refused, because
/// a caller may send back a message that it has got.
pub fn drop_own_metadata(message: &mut Message, request: &mut Option<Metadata>) {
    let parts = message.parts.iter_mut().map(|part| &mut part.metadata);
    for metadata in [&mut message.metadata, request].into_iter().chain(parts) {
        let Some(keys) = metadata.as_mut().filter(|keys| keys.iter().any(|(key, _)| key.starts_with(OWN_METADATA)))
        else {
            continue;
        };
        keys.retain(|key| !key.starts_with(OWN_METADATA));
        if keys.is_empty() {
            *metadata = None;
        }
    }
}

/// Routes the message, and checks what its agent requires of it.
pub(super) async fn route(call: &mut OperationCall<'_>, request: SendRequest) -> Result<Routed, Error> {
    let configuration = request.configuration.unwrap_or_default();
    let mut incoming = IncomingMessage {
        address: call.address.clone(),
        message: request.message,
        accepted_output_modes: configuration.accepted_output_modes,
        metadata: request.metadata,
        idempotency_key: idempotency_key::read(call.headers)?,
        trace: trace_headers::read(call.headers)?,
        push_config: configuration.task_push_notification_config,
        webhook: None,
        return_immediately: configuration.return_immediately,
        streaming: call.operation.is_streaming(),
    };
    trace_headers::add_from_metadata(&mut incoming);
    let mut routed = call.state.engine.route(&call.identity.caller, incoming).await.map_err(from_engine)?;
    (call.hosted, call.served) = (routed.hosted().cloned(), routed.served());
    call.check_extensions()?;
    routed.extensions = call.extensions_of_agent();
    call.read_files(&mut routed.incoming.message)?;
    limits::parts(&call.state.options, &routed.incoming.message)?;
    Ok(routed)
}

/// Hands the message to the kernel; it is committed when this returns.
pub(super) async fn submit(call: &OperationCall<'_>, mut routed: Routed) -> Result<Submitted, Error> {
    prepare(call, &mut routed).await?;
    let submitted = call.state.engine.send(routed).await;
    submitted.map_err(|refusal| push::refused_message(call.dialect, refusal))
}

/// Checks and stores the webhook of a message, if it has one.
async fn prepare(call: &OperationCall<'_>, routed: &mut Routed) -> Result<(), Error> {
    if routed.incoming.push_config.is_some() {
        // Boxed, because hardly any message has one and every message would carry its size along.
        Box::pin(push::prepare_inline(call, routed)).await?;
    }
    Ok(())
}

/// A v0.3 caller that does not say whether to wait gets what the agent's switch says.
fn returns_immediately(call: &OperationCall<'_>, incoming: &IncomingMessage) -> bool {
    let switched = call.dialect.version() == Version::V03
        && call.served.as_ref().is_some_and(|served| !served.switches.v03_blocking);
    incoming.return_immediately || switched && !says_blocking(&call.json)
}

/// Whether the configuration holds `blocking` at all; only asked for agents that are switched.
fn says_blocking(json: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Parameters {
        configuration: Option<Configuration>,
    }
    #[derive(Deserialize)]
    struct Configuration {
        blocking: Option<IgnoredAny>,
    }
    let parameters = serde_json::from_slice::<Parameters>(json).ok();
    parameters.and_then(|parameters| parameters.configuration?.blocking).is_some()
}
