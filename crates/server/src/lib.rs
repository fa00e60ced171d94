//! The A2A server: an accept loop, guards and callers in `edge`, the protocol's bindings in `bindings`.
//!
//! A request passes through bytes, guards, caller, binding, engine. [`Server`] is all of it; its owner passes the
//! listener, the kernel, the authenticator and the stop signal in. A [`Front`] adds endpoints beside A2A.

mod api;
mod authenticator;
mod bindings;
mod body;
mod edge;
mod event_stream;
mod front;
mod health;
mod metric_definitions;
mod options;
mod response_budget;
mod state;
mod websocket;

pub use authenticator::{Authenticator, CallerIdentity};
pub use bindings::{drop_own_metadata, idempotency_key, page_token, percent, protocol_error, trace_headers};
pub use body::Body;
pub use edge::{Server, Tls, TlsError, TlsPart, json_response};
pub use event_stream::{FrameFormat, StreamFlow};
pub use front::{Access, Authorization, BodyRule, Exchange, Front, WrongMethod};
pub use metric_definitions::describe_metrics;
pub use options::{Options, RenderMetrics};
pub use response_budget::{ResponseBudget, SMALL as SMALL_RESPONSE};
pub use websocket::{MessageFormat, NoWebSocket, WebSocketRequest};

pub(crate) use bindings::RequestContext;
pub(crate) use edge::request_metrics::RequestLabels;
pub(crate) use state::{CurrentState, State};
