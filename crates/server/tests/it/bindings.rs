//! The bindings through the public API: a whole server in process, real sockets, a real store.

mod agents;
mod card_cache;
mod cards;
pub(crate) mod client;
pub(crate) mod dialects;
mod direct;
mod errors;
mod extensions;
mod idempotency;
mod limits;
mod listing;
mod openapi;
mod operations;
mod page_tokens;
mod rest_files;
mod resume;
mod routes;
mod routing;
mod stream_end;
mod tenants;
mod trace_headers;
mod turns;
mod versions;
pub(crate) mod webhooks;
pub(crate) mod world;
