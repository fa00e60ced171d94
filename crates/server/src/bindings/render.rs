//! Renders results within the response budget. A small result is rendered at once; a large one waits until the budget has
//! room for it, then for its render slot, and is read and rendered off the async threads.

use std::collections::VecDeque;

use bytes::Bytes;
use switchboard_a2a::{Error, ErrorKind, TaskId};
use switchboard_engine::TaskReading;

use super::error::from_engine;
use super::operation::{OperationCall, Reply};
use super::task::{self, TaskStyle};
use crate::body::split_into_pieces;
use crate::response_budget::{RenderSlot, ReservedBytes, SMALL};
use crate::state::stopping;

impl OperationCall<'_> {
    /// Reserves about so many bytes, as soon as the caller's budget has them.
    pub(super) async fn reserve(&self, bytes: u64) -> Result<ReservedBytes, Error> {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        if let Some(reserved) = self.state.responses.try_reserve(self.identity, bytes) {
            return Ok(reserved);
        }
        // Boxed, because it is rare and every request would carry its size along.
        self.unless_stopping(Box::pin(self.state.responses.reserve(self.identity, bytes))).await
    }

    /// Waits for the caller's turn to have a large result rendered.
    pub(super) async fn render_slot(&self) -> Result<RenderSlot, Error> {
        self.unless_stopping(self.state.responses.render_slot(self.identity)).await
    }

    /// Reserves the first frame of a stream of a task that exists, where it is large.
    pub(super) async fn reserve_for(&self, id: &TaskId) -> Result<Option<ReservedBytes>, Error> {
        let size = self.state.engine.size(&self.address, &self.identity.caller, id).await;
        match size {
            Ok(bytes) if bytes > SMALL as u64 => self.reserve(bytes).await.map(Some),
            // A missing task is reported by the operation itself.
            _ => Ok(None),
        }
    }

    /// A wait for slow clients must not delay graceful shutdown.
    async fn unless_stopping<T>(&self, waiting: impl Future<Output = T>) -> Result<T, Error> {
        tokio::select! {
            biased;
            done = waiting => Ok(done),
            () = self.state.engine.drained().cancelled() => Err(stopping()),
        }
    }

    async fn read(&self, id: &TaskId) -> Result<TaskReading, Error> {
        self.state.engine.get(&self.address, &self.identity.caller, id).await.map_err(from_engine)
    }
}

/// Renders a large task that is known by its id and size: it is read once the budget has room for it.
pub(super) async fn large_task(
    call: &mut OperationCall<'_>,
    id: &TaskId,
    bytes: u64,
    style: TaskStyle,
    out: &mut Vec<u8>,
) -> Result<Reply, Error> {
    let reserved = call.reserve(bytes).await?;
    let slot = call.render_slot().await?;
    let reading = call.read(id).await?;
    render_task(call, (reserved, Some(slot)), style, reading, out).await
}

/// Renders the task that an operation has come to. It is done, so the caller gets it even during a graceful shutdown; a
/// large one that has to wait for the budget is dropped and read again, so that waiting responses hold no memory.
pub(super) async fn task(
    call: &mut OperationCall<'_>,
    id: &TaskId,
    style: TaskStyle,
    reading: TaskReading,
    out: &mut Vec<u8>,
) -> Result<Reply, Error> {
    let bytes = reading.bytes();
    if bytes > SMALL as u64 {
        return Box::pin(large_outcome(call, id, style, reading, out)).await;
    }
    let reserved = call.reserve(bytes).await;
    let reserved = reserved.unwrap_or_else(|_| call.state.responses.force(call.identity, SMALL));
    task::write(call.wire(), style, reading, out)?;
    Ok(written(call, reserved, out))
}

async fn large_outcome(
    call: &mut OperationCall<'_>,
    id: &TaskId,
    style: TaskStyle,
    reading: TaskReading,
    out: &mut Vec<u8>,
) -> Result<Reply, Error> {
    let bytes = usize::try_from(reading.bytes()).unwrap_or(usize::MAX);
    let responses = &call.state.responses;
    let (reserved, reading) = match responses.try_reserve(call.identity, bytes) {
        Some(reserved) => (reserved, Some(reading)),
        None => {
            drop(reading);
            let reserved = call.reserve(bytes as u64).await;
            (reserved.unwrap_or_else(|_| responses.force(call.identity, bytes)), None)
        }
    };
    let slot = call.render_slot().await.ok();
    let reading = match reading {
        Some(reading) => reading,
        None => call.read(id).await?,
    };
    render_task(call, (reserved, slot), style, reading, out).await
}

async fn render_task(
    call: &mut OperationCall<'_>,
    (reserved, slot): (ReservedBytes, Option<RenderSlot>),
    style: TaskStyle,
    reading: TaskReading,
    out: &mut Vec<u8>,
) -> Result<Reply, Error> {
    let wire = call.wire();
    let mut bytes = std::mem::take(out);
    let pieces = off_thread(move || {
        task::write(wire, style, reading, &mut bytes)?;
        let pieces = split_into_pieces(bytes);
        drop(slot);
        Ok(pieces)
    });
    Ok(in_pieces(call, reserved, pieces.await?))
}

/// Runs what takes the processor for a while off the async threads.
pub(super) async fn off_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| {
        tracing::error!(%error, "a large response could not be rendered, this is a bug");
        Err(Error::new(ErrorKind::Internal))
    })
}

/// A small result that is in the buffer.
pub(super) fn written(call: &mut OperationCall<'_>, mut reserved: ReservedBytes, out: &[u8]) -> Reply {
    reserved.resize(out.len());
    call.reserved = Some(reserved);
    Reply::Written
}

/// A large result.
pub(super) fn in_pieces(call: &mut OperationCall<'_>, mut reserved: ReservedBytes, pieces: VecDeque<Bytes>) -> Reply {
    reserved.resize(pieces.iter().map(Bytes::len).sum());
    call.reserved = Some(reserved);
    Reply::Large(pieces)
}
