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
    /// A protocol version that is not supported.
    VersionNotSupported,
    /// No credentials, or wrong ones.
    Unauthenticated,
    /// Known, and not allowed.
    PermissionDenied,
    /// No agent of that name.
    AgentNotFound,
    /// The agent that was asked for does not have the skill that was asked for.
    SkillNotOffered,
    /// The same work was asked for a short while ago; worth trying again later.
    Cooldown,
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

/// What one kind is on the wire.
#[derive(Debug)]
pub struct ErrorDefinition {
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
    /// The default message.
    pub message: &'static str,
}

/// Every kind in the order of the enum, with its row.
#[rustfmt::skip]
static TABLE: [(ErrorKind, ErrorDefinition); 24] = [
    (ErrorKind::Parse, ErrorDefinition { code: -32700, reason: "PARSE_ERROR", http: 400, http_v03: 400, grpc: "INVALID_ARGUMENT", message: "Invalid JSON payload" }),
    (ErrorKind::InvalidRequest, ErrorDefinition { code: -32600, reason: "INVALID_REQUEST", http: 400, http_v03: 400, grpc: "INVALID_ARGUMENT", message: "Request payload validation error" }),
    (ErrorKind::MethodNotFound, ErrorDefinition { code: -32601, reason: "METHOD_NOT_FOUND", http: 404, http_v03: 404, grpc: "NOT_FOUND", message: "Method not found" }),
    (ErrorKind::InvalidParams, ErrorDefinition { code: -32602, reason: "INVALID_PARAMS", http: 400, http_v03: 400, grpc: "INVALID_ARGUMENT", message: "Invalid parameters" }),
    (ErrorKind::Internal, ErrorDefinition { code: -32603, reason: "INTERNAL_ERROR", http: 500, http_v03: 500, grpc: "INTERNAL", message: "Internal error" }),
    (ErrorKind::TaskNotFound, ErrorDefinition { code: -32001, reason: "TASK_NOT_FOUND", http: 404, http_v03: 404, grpc: "NOT_FOUND", message: "Task not found" }),
    (ErrorKind::TaskNotCancelable, ErrorDefinition { code: -32002, reason: "TASK_NOT_CANCELABLE", http: 400, http_v03: 409, grpc: "FAILED_PRECONDITION", message: "Task cannot be canceled" }),
    (ErrorKind::PushNotSupported, ErrorDefinition { code: -32003, reason: "PUSH_NOTIFICATION_NOT_SUPPORTED", http: 400, http_v03: 400, grpc: "FAILED_PRECONDITION", message: "Push Notification is not supported" }),
    (ErrorKind::UnsupportedOperation, ErrorDefinition { code: -32004, reason: "UNSUPPORTED_OPERATION", http: 400, http_v03: 400, grpc: "FAILED_PRECONDITION", message: "This operation is not supported" }),
    (ErrorKind::ContentTypeNotSupported, ErrorDefinition { code: -32005, reason: "CONTENT_TYPE_NOT_SUPPORTED", http: 400, http_v03: 400, grpc: "INVALID_ARGUMENT", message: "Incompatible content types" }),
    (ErrorKind::InvalidAgentResponse, ErrorDefinition { code: -32006, reason: "INVALID_AGENT_RESPONSE", http: 500, http_v03: 500, grpc: "INTERNAL", message: "Invalid agent response" }),
    (ErrorKind::ExtendedCardNotConfigured, ErrorDefinition { code: -32007, reason: "EXTENDED_AGENT_CARD_NOT_CONFIGURED", http: 400, http_v03: 404, grpc: "FAILED_PRECONDITION", message: "Authenticated Extended Card is not configured" }),
    (ErrorKind::ExtensionRequired, ErrorDefinition { code: -32008, reason: "EXTENSION_SUPPORT_REQUIRED", http: 400, http_v03: 500, grpc: "FAILED_PRECONDITION", message: "Extension support required" }),
    (ErrorKind::VersionNotSupported, ErrorDefinition { code: -32009, reason: "VERSION_NOT_SUPPORTED", http: 400, http_v03: 500, grpc: "FAILED_PRECONDITION", message: "Version not supported" }),
    (ErrorKind::Unauthenticated, ErrorDefinition { code: -32600, reason: "UNAUTHENTICATED", http: 401, http_v03: 401, grpc: "UNAUTHENTICATED", message: "Authentication required" }),
    (ErrorKind::PermissionDenied, ErrorDefinition { code: -32600, reason: "PERMISSION_DENIED", http: 403, http_v03: 403, grpc: "PERMISSION_DENIED", message: "Permission denied" }),
    (ErrorKind::AgentNotFound, ErrorDefinition { code: -32602, reason: "AGENT_NOT_FOUND", http: 404, http_v03: 404, grpc: "NOT_FOUND", message: "Agent not found" }),
    (ErrorKind::SkillNotOffered, ErrorDefinition { code: -32602, reason: "SKILL_NOT_OFFERED", http: 400, http_v03: 400, grpc: "INVALID_ARGUMENT", message: "The agent does not have this skill" }),
    (ErrorKind::Cooldown, ErrorDefinition { code: -32603, reason: "COOLDOWN", http: 429, http_v03: 429, grpc: "RESOURCE_EXHAUSTED", message: "Cooling down, try again later" }),
    (ErrorKind::TooLarge, ErrorDefinition { code: -32600, reason: "REQUEST_TOO_LARGE", http: 413, http_v03: 413, grpc: "RESOURCE_EXHAUSTED", message: "Request too large" }),
    (ErrorKind::HeadersTooLarge, ErrorDefinition { code: -32600, reason: "REQUEST_HEADERS_TOO_LARGE", http: 431, http_v03: 431, grpc: "RESOURCE_EXHAUSTED", message: "Request headers too large" }),
    // The sender did not complete the request: -32600 as for one that is too large, not an internal -32603.
    (ErrorKind::RequestTimeout, ErrorDefinition { code: -32600, reason: "REQUEST_TIMEOUT", http: 408, http_v03: 408, grpc: "DEADLINE_EXCEEDED", message: "Request came too slowly" }),
    (ErrorKind::Overloaded, ErrorDefinition { code: -32603, reason: "OVERLOADED", http: 503, http_v03: 503, grpc: "UNAVAILABLE", message: "Server is overloaded, try again later" }),
    (ErrorKind::IdempotencyKeyReused, ErrorDefinition { code: -32602, reason: "IDEMPOTENCY_KEY_REUSED", http: 409, http_v03: 409, grpc: "ALREADY_EXISTS", message: "Idempotency key was used with another body" }),
];

impl ErrorKind {
    /// Every kind.
    pub const ALL: [Self; TABLE.len()] = {
        let mut all = [Self::Parse; TABLE.len()];
        let mut index = 0;
        while index < all.len() {
            all[index] = TABLE[index].0;
            assert!(all[index] as usize == index, "the table has the order of the enum");
            index += 1;
        }
        all
    };

    /// Its row in the table.
    pub fn entry(self) -> &'static ErrorDefinition {
        &TABLE[self as usize].1
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

    /// Whether v0.3 data must give the reason: the code is read as another error's, and nothing else tells them apart,
    /// as `retryAfterMs` does for an overload.
    pub(crate) fn needs_reason_in_v03(self) -> bool {
        let code = i64::from(self.code(Dialect::V03Rpc));
        self != Self::Overloaded && Self::from_code(code) != Some(self)
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
