//! Sending a message and streaming what follows.

use bytes::Bytes;
use futures_util::FutureExt;
use switchboard_a2a::{Error, SendRequest};
use switchboard_engine::Replies;

use super::operation::{OperationCall, no_streaming};
use super::send;
use super::sse::{Events, Source};

/// The stream of a message: a direct reply, or the task and everything after the message.
pub(super) async fn perform(call: &mut OperationCall<'_>, request: SendRequest) -> Result<Events, Error> {
    let history_length = request.configuration.as_ref().and_then(|configuration| configuration.history_length);
    let routed = send::route(call, request).await?;
    if let Some(hosted) = call.hosted.as_ref().filter(|_| !call.streams()) {
        return Err(no_streaming(hosted));
    }
    let slot = call.state.streams.take(&call.identity.caller.id)?;
    // The first frame of a follow-up is a copy of its task, so its bytes are reserved before it is made.
    let reserved = match routed.task_bytes() {
        Some(bytes) => call.reserve_large(bytes).await?,
        None => None,
    };
    let submitted = send::submit(call, routed).await?;
    call.json = Bytes::new();
    let until = call.until(call.served.as_deref());
    let may_reply = call.served.as_ref().is_some_and(|served| served.manifest.replies != Replies::Task);
    let streamed = submitted.stream(until, call.cursor());
    let source = if may_reply {
        // The agent may take its time to decide; the caller already has its headers and gets keep-alives.
        Source::Undecided(streamed.boxed())
    } else {
        Source::from(streamed.await)
    };
    let files_twice = call.writes_files_twice();
    Ok(Events { source, until, history_length, files_twice, slot, reserved })
}
