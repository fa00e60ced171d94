//! What operations return: typed, before any dialect or binding. `render.rs` encodes it in the caller's dialect, and
//! `response.rs` puts that into the envelope of its binding.

use bytes::Bytes;
use switchboard_a2a::card::AgentCard;
use switchboard_a2a::{Message, PushConfig, TaskId};
use switchboard_engine::TaskReading;

use super::sse::Events;
use super::task_page::TaskPageResult;
use crate::response_budget::ReservedBytes;

pub(super) enum OperationResult {
    Task(TaskResult),
    /// A direct reply.
    Message(Box<Message>),
    Tasks(Box<TaskPageResult>),
    PushConfig(Box<PushConfig>),
    PushConfigs {
        configs: Vec<PushConfig>,
        /// Empty on the last page.
        next_page_token: String,
    },
    /// A webhook was deleted.
    Deleted,
    Card(CardResult),
    Events(Box<Events>),
}

/// A task, of which much may have to wait for the response budget.
pub(super) struct TaskResult {
    pub(super) id: TaskId,
    /// How much history is returned; absent is all.
    pub(super) history_length: Option<u32>,
    pub(super) content: TaskContent,
}

pub(super) enum TaskContent {
    /// A small one, read within bytes that were reserved for it.
    Reserved(TaskReading, ReservedBytes),
    /// One that an operation has come to, of any size.
    Read(TaskReading),
    /// A large one, to be read once the budget has room for so many bytes.
    Stored(u64),
}

pub(super) enum CardResult {
    Extended(Box<AgentCard>),
    /// The public one, which is kept encoded between requests.
    Public(Bytes),
}
