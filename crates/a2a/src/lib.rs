//! The A2A protocol, pure: the v1.0 model, the dialects that carry it, the JSON-RPC envelope, errors and cards.
//!
//! No I/O and no async. The model in [`model`] is version 1.0, and its own JSON is the v1.0 wire format; the other
//! dialects translate at the edge, in [`request`], [`decode`] and [`sse`] on the way in and in [`request`] and [`encode`] on
//! the way out.

pub mod card;
pub mod decode;
pub mod dialect;
pub mod encode;
pub mod error;
pub mod extension;
mod fold;
pub mod id;
pub mod json;
pub mod jsonrpc;
mod lenient;
pub mod model;
pub mod operation;
pub mod request;
pub mod rest_files;
pub mod sse;
pub mod time;
mod v03;
mod write_json;

pub use dialect::{Dialect, SUPPORTED_VERSIONS, Version, VersionNumber, parse_version};
pub use error::{Error, ErrorKind, Violation};
pub use id::{ArtifactId, ContextId, MessageId, TaskId};
pub use json::{Json, Metadata};
pub use model::*;
pub use operation::Operation;
pub use request::{
    EncodeError, ListRequest, PushRequest, Request, RestCall, RestFallback, RestParts, decode_params, decode_rest,
    encode_params, encode_rest,
};
pub use rest_files::RestFiles;
pub use time::Timestamp;
