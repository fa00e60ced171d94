//! What a dialect cannot express: reported before anything is sent, so that the caller decides whether to go on without.

use super::{PushRequest, Request};
use crate::{Dialect, Operation};

/// Why a request cannot be written in a dialect.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// No peer of the dialect has the operation on this binding.
    #[error("{dialect} has no {operation} on this binding")]
    Operation { operation: Operation, dialect: Dialect },
    /// A field the dialect has no place for. [`Request::remove_unsupported`] takes such fields out.
    #[error("{dialect} has no place for {field} in this request")]
    Field {
        /// The field by its v1.0 path, such as `message.referenceTaskIds`.
        field: &'static str,
        dialect: Dialect,
    },
    /// A field that may be left out elsewhere, but not here.
    #[error("{dialect} needs {field} in this request, and it is missing or empty")]
    Missing {
        /// The field by its v1.0 path.
        field: &'static str,
        dialect: Dialect,
    },
    /// An id that would make the path mean something else.
    #[error("{field} {id:?} cannot stand in a path of {dialect}")]
    Segment {
        /// The field by its v1.0 path.
        field: &'static str,
        id: String,
        /// The dialect of the path.
        dialect: Dialect,
    },
    /// The request belongs to another operation.
    #[error("the request is not one of {operation}")]
    Mismatch {
        /// What it was to be written for.
        operation: Operation,
    },
}

const TENANT: &str = "tenant";
const METADATA: &str = "metadata";
const REFERENCES: &str = "message.referenceTaskIds";
const INLINE_TENANT: &str = "configuration.taskPushNotificationConfig.tenant";
const INLINE_PAYLOAD: &str = "configuration.taskPushNotificationConfig.payload";
const PAYLOAD: &str = "payload";
const PAGE_SIZE: &str = "pageSize";
const PAGE_TOKEN: &str = "pageToken";

impl Request {
    /// The fields that are set and that the dialect has no place for, by their v1.0 paths. Media types and names of text
    /// and data parts are not among them: v0.3 has none, and nothing is lost that its reader would use.
    pub fn unsupported_fields(&self, dialect: Dialect) -> Vec<&'static str> {
        let mut fields = Vec::new();
        if dialect == Dialect::V1 {
            return fields;
        }
        let is_rest = dialect == Dialect::V03Rest;
        let mut note = |is_lost: bool, field: &'static str| {
            if is_lost {
                fields.push(field);
            }
        };
        note(self.tenant().is_some(), TENANT);
        match self {
            Self::Send(request) => {
                note(is_rest && !request.message.reference_task_ids.is_empty(), REFERENCES);
                let configuration = request.configuration.as_ref();
                if let Some(push) = configuration.and_then(|of| of.task_push_notification_config.as_ref()) {
                    note(push.tenant.is_some(), INLINE_TENANT);
                    note(push.payload.is_some(), INLINE_PAYLOAD);
                }
            }
            Self::Cancel { metadata, .. } => note(is_rest && metadata.is_some(), METADATA),
            Self::Push(PushRequest::Create(config)) => note(config.payload.is_some(), PAYLOAD),
            Self::Push(PushRequest::List { page_size, page_token, .. }) => {
                note(!is_rest && page_size.is_some(), PAGE_SIZE);
                note(!is_rest && page_token.is_some(), PAGE_TOKEN);
            }
            _ => {}
        }
        fields
    }

    /// Takes out what the dialect has no place for, and says what that was.
    pub fn remove_unsupported(&mut self, dialect: Dialect) -> Vec<&'static str> {
        let fields = self.unsupported_fields(dialect);
        for field in &fields {
            if *field == TENANT {
                *self.tenant_mut() = None;
                continue;
            }
            match self {
                Self::Send(request) => {
                    let configuration = request.configuration.as_mut();
                    match (*field, configuration.and_then(|of| of.task_push_notification_config.as_mut())) {
                        (INLINE_TENANT, Some(push)) => push.tenant = None,
                        (INLINE_PAYLOAD, Some(push)) => push.payload = None,
                        _ => request.message.reference_task_ids.clear(),
                    }
                }
                Self::Cancel { metadata, .. } => *metadata = None,
                Self::Push(PushRequest::Create(config)) => config.payload = None,
                Self::Push(PushRequest::List { page_size, .. }) if *field == PAGE_SIZE => *page_size = None,
                Self::Push(PushRequest::List { page_token, .. }) => *page_token = None,
                _ => {}
            }
        }
        fields
    }
}
