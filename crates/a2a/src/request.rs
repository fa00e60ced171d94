//! What a caller asks for, typed and checked, whatever dialect and binding it came in; and written, to ask a peer.
//!
//! Reading is lenient in spelling and strict in meaning: a wrong value is refused with the path of its field.

#![expect(missing_docs, reason = "only what a name and its type do not say is written down")]

mod params;
mod push;
mod read_object;
mod rest;
mod send;
mod unsupported;
mod write;

use crate::{ContextId, Metadata, PushConfig, SendRequest, TaskId, TaskState, Timestamp};

pub use params::decode_params;
pub use rest::{RestParts, decode_rest};
pub use unsupported::EncodeError;
pub use write::{RestCall, RestFallback, encode_params, encode_rest};

/// One request. Sending and streaming share [`Request::Send`], the two cards [`Request::ExtendedCard`], and the
/// operation tells them apart.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "the large one is the common one: a box would cost every send")]
pub enum Request {
    Send(SendRequest),
    Get {
        id: TaskId,
        /// How much history: absent is all, zero is none.
        history_length: Option<u32>,
        /// Which agent, where one address serves many.
        tenant: Option<String>,
    },
    List(ListRequest),
    Cancel {
        id: TaskId,
        /// Anything else about the request.
        metadata: Option<Metadata>,
        /// Which agent, where one address serves many.
        tenant: Option<String>,
    },
    Subscribe {
        id: TaskId,
        /// Which agent, where one address serves many.
        tenant: Option<String>,
    },
    Push(PushRequest),
    /// Read the card for known callers, or whichever card the caller may have.
    ExtendedCard {
        /// Which agent, where one address serves many.
        tenant: Option<String>,
    },
}

/// Which tasks to list, and how much of each.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ListRequest {
    /// Only this conversation.
    pub context_id: Option<ContextId>,
    /// Only this state.
    pub status: Option<TaskState>,
    /// 1 to 100.
    pub page_size: Option<u32>,
    /// Where the page before ended.
    pub page_token: Option<String>,
    /// How much history of each task: absent is all, zero is none.
    pub history_length: Option<u32>,
    /// Only tasks whose status is not older than this.
    pub status_timestamp_after: Option<Timestamp>,
    pub include_artifacts: bool,
    /// Which agent, where one address serves many.
    pub tenant: Option<String>,
}

/// A request about webhooks.
#[derive(Clone, Debug, PartialEq)]
pub enum PushRequest {
    /// Register one; its task id is set.
    Create(PushConfig),
    Get {
        task_id: TaskId,
        /// The configuration; only v0.3 callers may leave it out and mean the task's own one.
        id: Option<String>,
        /// Which agent, where one address serves many.
        tenant: Option<String>,
    },
    /// Read all of a task.
    List {
        task_id: TaskId,
        /// 1 to 100.
        page_size: Option<u32>,
        /// Where the page before ended.
        page_token: Option<String>,
        /// Which agent, where one address serves many.
        tenant: Option<String>,
    },
    Delete {
        task_id: TaskId,
        id: String,
        /// Which agent, where one address serves many.
        tenant: Option<String>,
    },
}

impl Request {
    /// The tenant it names.
    pub fn tenant(&self) -> Option<&str> {
        let tenant = match self {
            Self::Send(request) => &request.tenant,
            Self::List(request) => &request.tenant,
            Self::Get { tenant, .. }
            | Self::Cancel { tenant, .. }
            | Self::Subscribe { tenant, .. }
            | Self::ExtendedCard { tenant } => tenant,
            Self::Push(PushRequest::Create(config)) => &config.tenant,
            Self::Push(
                PushRequest::Get { tenant, .. } | PushRequest::List { tenant, .. } | PushRequest::Delete { tenant, .. },
            ) => tenant,
        };
        tenant.as_deref()
    }

    fn tenant_mut(&mut self) -> &mut Option<String> {
        match self {
            Self::Send(request) => &mut request.tenant,
            Self::List(request) => &mut request.tenant,
            Self::Get { tenant, .. }
            | Self::Cancel { tenant, .. }
            | Self::Subscribe { tenant, .. }
            | Self::ExtendedCard { tenant } => tenant,
            Self::Push(PushRequest::Create(config)) => &mut config.tenant,
            Self::Push(
                PushRequest::Get { tenant, .. } | PushRequest::List { tenant, .. } | PushRequest::Delete { tenant, .. },
            ) => tenant,
        }
    }
}
