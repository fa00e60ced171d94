//! Renders the results of operations in the dialect of their caller, within the response budget. A small result is
//! rendered at once; a large one waits until the budget has room for it, then for its render slot, and is read and
//! rendered off the async threads.

use std::collections::VecDeque;

use bytes::Bytes;
use switchboard_a2a::{Error, ErrorKind, Operation, TaskId, encode, rest_files};
use switchboard_engine::TaskReading;

use super::error::from_engine;
use super::extended_card::form as card_format;
use super::operation::OperationCall;
use super::operation_result::{CardResult, OperationResult, TaskContent, TaskResult};
use super::sse::Events;
use super::task::{TaskForm, TaskStyle};
use crate::body::split_into_pieces;
use crate::response_budget::{RenderSlot, ReservedBytes, SMALL};
use crate::state::stopping;

/// A result in the dialect of its caller; its binding is still to put it into its envelope.
pub(super) enum Rendered {
    /// It is in the buffer, behind what the binding has put before it.
    Written,
    /// The result and what was in the buffer before it, in pieces.
    Large(VecDeque<Bytes>),
    Nothing,
    Events(Box<Events>),
}

impl OperationCall<'_> {
    pub(super) async fn render(&mut self, result: OperationResult) -> Result<Rendered, Error> {
        match result {
            OperationResult::Task(result) => return self.render_task(result).await,
            OperationResult::Tasks(page) => return Box::pin(self.render_page(*page)).await,
            OperationResult::Events(events) => return Ok(Rendered::Events(events)),
            OperationResult::Deleted => return Ok(Rendered::Nothing),
            OperationResult::Message(mut message) => {
                if self.writes_files_twice() {
                    rest_files::add_layer(&mut *message);
                }
                self.out.extend_from_slice(&encode::encode_send_message(self.dialect, &message));
            }
            OperationResult::PushConfig(config) => {
                self.out.extend_from_slice(&encode::encode_push_config(self.dialect, &config));
            }
            OperationResult::PushConfigs { configs, next_page_token } => {
                self.out.extend_from_slice(&encode::encode_push_list(self.dialect, &configs, &next_page_token));
            }
            OperationResult::Card(CardResult::Extended(card)) => {
                self.out.extend_from_slice(&card.encode(card_format(self.dialect)));
            }
            OperationResult::Card(CardResult::Public(json)) => self.out.extend_from_slice(&json),
        }
        Ok(Rendered::Written)
    }

    async fn render_task(&mut self, result: TaskResult) -> Result<Rendered, Error> {
        let TaskResult { id, history_length, content } = result;
        let form = if self.operation == Operation::SendMessage { TaskForm::Sent } else { TaskForm::Bare };
        let style = self.style(form, history_length);
        match content {
            TaskContent::Read(reading) => self.render_read(&id, style, reading).await,
            TaskContent::Reserved(reading, reserved) => {
                style.write(reading, &mut self.out)?;
                Ok(self.written(reserved))
            }
            TaskContent::Stored(bytes) => Box::pin(self.render_stored(&id, bytes, style)).await,
        }
    }

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
            Ok(bytes) => self.reserve_large(bytes).await,
            // A missing task is reported by the operation itself.
            Err(_) => Ok(None),
        }
    }

    /// The same for a task of a known size.
    pub(super) async fn reserve_large(&self, bytes: u64) -> Result<Option<ReservedBytes>, Error> {
        if bytes > SMALL as u64 { self.reserve(bytes).await.map(Some) } else { Ok(None) }
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

    /// Renders a large task that is known by its id and size: it is read once the budget has room for it.
    async fn render_stored(&mut self, id: &TaskId, bytes: u64, style: TaskStyle) -> Result<Rendered, Error> {
        let reserved = self.reserve(bytes).await?;
        let slot = self.render_slot().await?;
        let reading = self.read(id).await?;
        self.render_off_thread(reserved, Some(slot), style, reading).await
    }

    /// Renders the task that an operation has come to. It is done, so the caller gets it even during a graceful
    /// shutdown.
    async fn render_read(&mut self, id: &TaskId, style: TaskStyle, reading: TaskReading) -> Result<Rendered, Error> {
        let bytes = reading.bytes();
        if bytes > SMALL as u64 {
            return Box::pin(self.render_large(id, style, reading)).await;
        }
        let reserved = self.reserve(bytes).await;
        let reserved = reserved.unwrap_or_else(|_| self.state.responses.force(self.identity, SMALL));
        style.write(reading, &mut self.out)?;
        Ok(self.written(reserved))
    }

    /// A large task that has to wait for the budget is dropped and read again, so that waiting responses hold no memory.
    async fn render_large(&mut self, id: &TaskId, style: TaskStyle, reading: TaskReading) -> Result<Rendered, Error> {
        let bytes = usize::try_from(reading.bytes()).unwrap_or(usize::MAX);
        let responses = &self.state.responses;
        let (reserved, reading) = match responses.try_reserve(self.identity, bytes) {
            Some(reserved) => (reserved, Some(reading)),
            None => {
                drop(reading);
                let reserved = self.reserve(bytes as u64).await;
                (reserved.unwrap_or_else(|_| responses.force(self.identity, bytes)), None)
            }
        };
        let slot = self.render_slot().await.ok();
        let reading = match reading {
            Some(reading) => reading,
            None => self.read(id).await?,
        };
        self.render_off_thread(reserved, slot, style, reading).await
    }

    async fn render_off_thread(
        &mut self,
        reserved: ReservedBytes,
        slot: Option<RenderSlot>,
        style: TaskStyle,
        reading: TaskReading,
    ) -> Result<Rendered, Error> {
        let mut bytes = std::mem::take(&mut self.out);
        let pieces = off_thread(move || {
            style.write(reading, &mut bytes)?;
            let pieces = split_into_pieces(bytes);
            drop(slot);
            Ok(pieces)
        });
        Ok(self.in_pieces(reserved, pieces.await?))
    }

    /// A small result that is in the buffer.
    pub(super) fn written(&mut self, mut reserved: ReservedBytes) -> Rendered {
        reserved.resize(self.out.len());
        self.reserved = Some(reserved);
        Rendered::Written
    }

    /// A large result.
    pub(super) fn in_pieces(&mut self, mut reserved: ReservedBytes, pieces: VecDeque<Bytes>) -> Rendered {
        reserved.resize(pieces.iter().map(Bytes::len).sum());
        self.reserved = Some(reserved);
        Rendered::Large(pieces)
    }
}

/// Runs what takes the processor for a while off the async threads.
pub(crate) async fn off_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| {
        tracing::error!(%error, "a large response could not be rendered, this is a bug");
        Err(Error::new(ErrorKind::Internal))
    })
}
