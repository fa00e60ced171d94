//! Subscribing to a task.
//!
//! The specification refuses a subscription to a terminal task. With `Last-Event-ID` it is a resumption, and the rest
//! of the log is sent.

use std::sync::Arc;

use switchboard_a2a::{Error, TaskId};
use switchboard_engine::{Hosted, SendStream};

use super::error::from_engine;
use super::operation::{OperationCall, no_streaming};
use super::sse::{Events, Source};

/// The stream of a task: the task as it is, or what came after the caller's cursor, and everything after that.
pub(super) async fn perform(call: &mut OperationCall<'_>, id: &TaskId) -> Result<Events, Error> {
    let slot = call.state.streams.take(&call.identity.caller.id)?;
    let mut until = call.until(None);
    let choose = |hosted: Option<&Arc<Hosted>>| {
        until = call.until(hosted.map(|hosted| hosted.served()).as_deref());
        until
    };
    // The first frame is a copy of the task, so its bytes are reserved before it is made.
    let reserved = call.reserve_for(id).await?;
    let engine = &call.state.engine;
    let subscribed = engine.subscribe(&call.address, &call.identity.caller, id, call.cursor(), choose).await;
    let subscription = subscribed.map_err(from_engine)?;
    // A resumed stream has no first frame, and reserves what it missed itself.
    let reserved = reserved.filter(|_| subscription.first.is_some());
    call.hosted = subscription.stream.hosted().cloned();
    call.served = call.hosted.as_ref().map(|hosted| hosted.served());
    if let Some(hosted) = call.hosted.as_ref().filter(|_| !call.streams()) {
        return Err(no_streaming(hosted));
    }
    let streamed = SendStream::Task(subscription);
    let files_twice = call.writes_files_twice();
    Ok(Events { source: Source::from(streamed), until, history_length: None, files_twice, slot, reserved })
}
