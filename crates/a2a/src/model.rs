//! The domain model: A2A v1.0, field by field.
//!
//! `Serialize` on these types is the strict v1.0 JSON, the same for JSON-RPC, REST and the log.
//! `Deserialize` is lenient: it takes every spelling real peers have been seen to send.

mod artifact;
mod event;
mod list;
mod message;
mod part;
mod send;
mod task;
mod visit_parts;

pub use artifact::Artifact;
pub use event::{StreamResponse, TaskArtifactUpdate, TaskStatusUpdate};
pub use list::ListResponse;
pub use message::{Message, Role};
pub use part::{Part, PartContent};
pub use send::{AuthenticationInfo, PushConfig, PushPayload, SendConfiguration, SendRequest, SendResponse};
pub use task::{Task, TaskState, TaskStatus};
pub use visit_parts::VisitParts;

pub(crate) use event::FrameKind;
pub(crate) use part::decode_base64;
pub(crate) use send::{ConfigurationWire, PushWire, resource_name};
