//! The one table of errors: code, reason, statuses and wording.

use crate::Dialect;

/// Every error this project sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The body is not JSON.
    Parse,
    /// The body is JSON and no request.
    InvalidRequest,
    /// No such method or path.
    MethodNotFound,
    /// A parameter is missing or wrong.
    InvalidParams,
    /// Our fault.
    Internal,
    /// No such task, or not the caller's.
    TaskNotFound,
    /// The task has ended already.
    TaskNotCancelable,
    /// The agent has no webhooks.
    PushNotSupported,
    /// The agent or the task's state does not allow it.
    UnsupportedOperation,
    /// A media type the agent cannot read or write.
    ContentTypeNotSupported,
    /// The agent behind us broke the protocol.
    InvalidAgentResponse,
    /// There is no extended card.
    ExtendedCardNotConfigured,
    /// The caller must declare an extension.
    ExtensionRequired,
    /// A version that is not spoken here.
    VersionNotSupported,
    /// No credentials, or wrong ones.
    Unauthenticated,
    /// Known, and not allowed.
    PermissionDenied,
    /// No agent of that name.
    AgentNotFound,
    /// The body is larger than the limit.
    TooLarge,
    /// The headers are more or larger than the limit.
    HeadersTooLarge,
    /// The body came too slowly to be waited for.
    RequestTimeout,
    /// Too busy now; worth trying again.
    Overloaded,
    /// An idempotency key came back with another body.
    IdempotencyKeyReused,
}

/// What the wire says of one kind.
#[derive(Debug)]
pub struct Entry {
    /// The JSON-RPC code.
    pub code: i32,
    /// `ErrorInfo.reason`.
    pub reason: &'static str,
    /// The HTTP status on v1.0 REST.
    pub http: u16,
    /// The HTTP status on v0.3 REST.
    pub http_v03: u16,
    /// The gRPC status, also `error.status` on v1.0 REST.
    pub grpc: &'static str,
    /// The wording where nobody has a better one.
    pub message: &'static str,
}

impl ErrorKind {
    /// Every kind.
    pub const ALL: [Self; 22] = [
        Self::Parse,
        Self::InvalidRequest,
        Self::MethodNotFound,
        Self::InvalidParams,
        Self::Internal,
        Self::TaskNotFound,
        Self::TaskNotCancelable,
        Self::PushNotSupported,
        Self::UnsupportedOperation,
        Self::ContentTypeNotSupported,
        Self::InvalidAgentResponse,
        Self::ExtendedCardNotConfigured,
        Self::ExtensionRequired,
        Self::VersionNotSupported,
        Self::Unauthenticated,
        Self::PermissionDenied,
        Self::AgentNotFound,
        Self::TooLarge,
        Self::HeadersTooLarge,
        Self::RequestTimeout,
        Self::Overloaded,
        Self::IdempotencyKeyReused,
    ];

    /// Its line in the table.
    #[rustfmt::skip]
    pub fn entry(self) -> &'static Entry {
        match self {
            Self::Parse => &Entry { code: -32700, reason: "PARSE_ERROR", http: 400, http_v03: 400, grpc: "INVALID_ARGUMENT", message: "Invalid JSON payload" },
            Self::InvalidRequest => &Entry { code: -32600, reason: "INVALID_REQUEST", http: 400, http_v03: 400, grpc: "INVALID_ARGUMENT", message: "Request payload validation error" },
            Self::MethodNotFound => &Entry { code: -32601, reason: "METHOD_NOT_FOUND", http: 404, http_v03: 404, grpc: "NOT_FOUND", message: "Method not found" },
            Self::InvalidParams => &Entry { code: -32602, reason: "INVALID_PARAMS", http: 400, http_v03: 400, grpc: "INVALID_ARGUMENT", message: "Invalid parameters" },
            Self::Internal => &Entry { code: -32603, reason: "INTERNAL_ERROR", http: 500, http_v03: 500, grpc: "INTERNAL", message: "Internal error" },
            Self::TaskNotFound => &Entry { code: -32001, reason: "TASK_NOT_FOUND", http: 404, http_v03: 404, grpc: "NOT_FOUND", message: "Task not found" },
            Self::TaskNotCancelable => &Entry { code: -32002, reason: "TASK_NOT_CANCELABLE", http: 400, http_v03: 409, grpc: "FAILED_PRECONDITION", message: "Task cannot be canceled" },
            Self::PushNotSupported => &Entry { code: -32003, reason: "PUSH_NOTIFICATION_NOT_SUPPORTED", http: 400, http_v03: 400, grpc: "FAILED_PRECONDITION", message: "Push Notification is not supported" },
            Self::UnsupportedOperation => &Entry { code: -32004, reason: "UNSUPPORTED_OPERATION", http: 400, http_v03: 400, grpc: "FAILED_PRECONDITION", message: "This operation is not supported" },
            Self::ContentTypeNotSupported => &Entry { code: -32005, reason: "CONTENT_TYPE_NOT_SUPPORTED", http: 400, http_v03: 400, grpc: "INVALID_ARGUMENT", message: "Incompatible content types" },
            Self::InvalidAgentResponse => &Entry { code: -32006, reason: "INVALID_AGENT_RESPONSE", http: 500, http_v03: 500, grpc: "INTERNAL", message: "Invalid agent response" },
            Self::ExtendedCardNotConfigured => &Entry { code: -32007, reason: "EXTENDED_AGENT_CARD_NOT_CONFIGURED", http: 400, http_v03: 404, grpc: "FAILED_PRECONDITION", message: "Authenticated Extended Card is not configured" },
            Self::ExtensionRequired => &Entry { code: -32008, reason: "EXTENSION_SUPPORT_REQUIRED", http: 400, http_v03: 500, grpc: "FAILED_PRECONDITION", message: "Extension support required" },
            Self::VersionNotSupported => &Entry { code: -32009, reason: "VERSION_NOT_SUPPORTED", http: 400, http_v03: 500, grpc: "FAILED_PRECONDITION", message: "Version not supported" },
            Self::Unauthenticated => &Entry { code: -32600, reason: "UNAUTHENTICATED", http: 401, http_v03: 401, grpc: "UNAUTHENTICATED", message: "Authentication required" },
            Self::PermissionDenied => &Entry { code: -32600, reason: "PERMISSION_DENIED", http: 403, http_v03: 403, grpc: "PERMISSION_DENIED", message: "Permission denied" },
            Self::AgentNotFound => &Entry { code: -32602, reason: "AGENT_NOT_FOUND", http: 404, http_v03: 404, grpc: "NOT_FOUND", message: "Agent not found" },
            Self::TooLarge => &Entry { code: -32600, reason: "REQUEST_TOO_LARGE", http: 413, http_v03: 413, grpc: "RESOURCE_EXHAUSTED", message: "Request too large" },
            Self::HeadersTooLarge => &Entry { code: -32600, reason: "REQUEST_HEADERS_TOO_LARGE", http: 431, http_v03: 431, grpc: "RESOURCE_EXHAUSTED", message: "Request headers too large" },
            // The request never became whole, which is the sender's affair: -32600 as for one that is too large, not our -32603.
            Self::RequestTimeout => &Entry { code: -32600, reason: "REQUEST_TIMEOUT", http: 408, http_v03: 408, grpc: "DEADLINE_EXCEEDED", message: "Request came too slowly" },
            Self::Overloaded => &Entry { code: -32603, reason: "OVERLOADED", http: 503, http_v03: 503, grpc: "UNAVAILABLE", message: "Server is overloaded, try again later" },
            Self::IdempotencyKeyReused => &Entry { code: -32602, reason: "IDEMPOTENCY_KEY_REUSED", http: 409, http_v03: 409, grpc: "ALREADY_EXISTS", message: "Idempotency key was used with another body" },
        }
    }

    /// The JSON-RPC code in a dialect. v0.3 does not know the last two codes: there they are internal errors.
    pub fn code(self, dialect: Dialect) -> i32 {
        match (self, dialect) {
            (Self::ExtensionRequired | Self::VersionNotSupported, Dialect::V03Rpc | Dialect::V03Rest) => -32603,
            _ => self.entry().code,
        }
    }

    /// The HTTP status on REST.
    pub fn http_status(self, dialect: Dialect) -> u16 {
        match dialect {
            Dialect::V1 => self.entry().http,
            Dialect::V03Rpc | Dialect::V03Rest => self.entry().http_v03,
        }
    }

    /// The HTTP status on JSON-RPC: errors are answers there, except where HTTP itself refuses the caller.
    pub fn rpc_http_status(self) -> u16 {
        match self {
            Self::Unauthenticated
            | Self::PermissionDenied
            | Self::TooLarge
            | Self::HeadersTooLarge
            | Self::RequestTimeout => self.entry().http,
            _ => 200,
        }
    }

    /// Whether v0.3 data must give the reason: the code is another error's too, and nothing else
    /// tells them apart, as `retryAfterMs` does for an overload.
    pub(crate) fn needs_reason_in_v03(self) -> bool {
        matches!(
            self,
            Self::ExtensionRequired
                | Self::VersionNotSupported
                | Self::Unauthenticated
                | Self::PermissionDenied
                | Self::AgentNotFound
                | Self::TooLarge
                | Self::HeadersTooLarge
                | Self::RequestTimeout
                | Self::IdempotencyKeyReused
        )
    }

    /// Finds the kind behind a peer's `ErrorInfo.reason`.
    pub fn from_reason(reason: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.entry().reason == reason)
    }

    /// Finds the kind behind a peer's JSON-RPC code.
    pub fn from_code(code: i64) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| i64::from(kind.entry().code) == code)
    }
}
