//! A2A on HTTP: JSON-RPC and REST of both versions, event streams and cards.
//!
//! The edge has found the route and the caller and has read the body. A binding reads the request in its dialect, one
//! file per operation performs it and returns a typed result, `render.rs` encodes that in the same dialect, and
//! `response.rs` puts it into the envelope of the binding.

mod agent_at;
mod cached_document;
mod cancel;
mod card;
mod dialect;
mod error;
mod extended_card;
mod extensions;
mod get;
pub mod idempotency_key;
mod jsonrpc;
mod limits;
mod list;
mod openapi;
mod operation;
mod operation_result;
pub mod page_token;
pub mod percent;
mod push;
mod rejection;
mod render;
mod response;
mod rest;
mod rest_files;
pub(crate) mod routes;
mod send;
mod sse;
mod stream;
mod subscribe;
mod task;
mod task_page;
mod tenant;
pub mod trace_headers;
mod truncate;

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Response, Uri};

use self::routes::Route;
use crate::{Body, CallerIdentity, State};

pub use self::error::from_engine as protocol_error;
pub(crate) use self::rejection::{no_agent_at, reject};
pub(crate) use self::render::off_thread;
pub use self::send::drop_own_metadata;

/// A request that has passed every guard: its caller is known and its body is read.
pub(crate) struct RequestContext {
    /// As it was sent; its route is found already.
    pub(crate) uri: Uri,
    pub(crate) headers: HeaderMap,
    /// Empty if there is none; within the limit, and of a JSON media type if not empty.
    pub(crate) body: Bytes,
    /// On public routes perhaps the anonymous one.
    pub(crate) identity: Arc<CallerIdentity>,
}

/// Public documents that are kept between requests.
#[derive(Default)]
pub(crate) struct DocumentCache {
    cards: card::Cards,
    openapi: openapi::Description,
}

/// Answers a request that has passed every guard.
pub(crate) async fn answer(state: &Arc<State>, route: Route, context: RequestContext) -> Response<Body> {
    match route {
        Route::Rpc(address) => jsonrpc::answer(state, address, context).await,
        Route::Rest(path) => rest::answer(state, path, context).await,
        Route::Card(address) => card::answer(state, &address, &context),
        Route::OpenApi => openapi::answer(state, &context),
    }
}
