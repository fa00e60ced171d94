//! A2A on HTTP: JSON-RPC and REST of both versions, event streams and cards.
//!
//! The edge has found the route and the caller and has read the body. A binding reads the request in its dialect, one
//! file per operation does what it asks, and the answer goes back in the same dialect.

mod cached_document;
mod cancel;
mod card;
mod dialect;
mod error;
mod extended_card;
mod extensions;
mod get;
mod jsonrpc;
mod limits;
mod list;
mod openapi;
mod operation;
pub mod page_token;
pub(crate) mod percent;
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
mod tenant;
mod truncate;

use std::sync::Arc;

use http::Response;

use self::routes::{Route, Target};
use crate::{Body, RequestContext, State};

pub(crate) use self::rejection::{no_agent_at, reject};

/// What is kept between requests.
#[derive(Default)]
pub(crate) struct DocumentCache {
    cards: card::Cards,
    openapi: openapi::Description,
}

/// Answers a request that has passed every guard.
pub(crate) async fn answer(state: &Arc<State>, route: Route, context: RequestContext) -> Response<Body> {
    match route.target {
        Target::Rpc { address } => jsonrpc::answer(state, address, context).await,
        Target::Rest(path) => rest::answer(state, path, context).await,
        Target::Card { address } => card::answer(state, &address, &context),
        Target::OpenApi => openapi::answer(state, &context),
    }
}
