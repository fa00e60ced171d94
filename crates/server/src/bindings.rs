//! A2A on HTTP: JSON-RPC and REST of both versions, event streams and cards.
//!
//! The edge has found the route and the caller and has read the body. A binding reads the request in its dialect, one
//! file per operation does what it asks, and the answer goes back in the same dialect.

mod call;
mod cancel;
mod card;
mod dialect;
mod document;
mod error;
mod extended_card;
mod extensions;
mod get;
mod jsonrpc;
mod large;
mod limits;
mod list;
mod openapi;
pub mod page_token;
pub(crate) mod percent;
mod push;
mod quote;
mod refuse;
mod reply;
mod rest;
mod rest_files;
pub(crate) mod routes;
mod send;
mod sse;
mod stream;
mod subscribe;
mod task;
mod tenant;

use std::sync::Arc;

use http::Response;

use self::routes::{Route, Target};
use crate::{Body, Exchange, State};

pub(crate) use self::refuse::{nobody_at, refuse};

/// What is kept between requests.
#[derive(Default)]
pub(crate) struct Shared {
    cards: card::Cards,
    openapi: openapi::Description,
}

/// Answers a request that has passed every guard.
pub(crate) async fn answer(state: &Arc<State>, route: Route, exchange: Exchange) -> Response<Body> {
    match route.target {
        Target::Rpc { address } => jsonrpc::answer(state, address, exchange).await,
        Target::Rest(path) => rest::answer(state, path, exchange).await,
        Target::Card { address } => card::answer(state, &address, &exchange),
        Target::OpenApi => openapi::answer(state, &exchange),
    }
}
