//! The bindings through the public door: a whole server in process, real sockets, a real store.

mod agents;
mod cards;
pub(crate) mod client;
mod closing;
mod direct;
pub(crate) mod doors;
mod errors;
mod extensions;
mod idempotency;
mod limits;
mod listing;
mod openapi;
mod operations;
mod rest_files;
mod resume;
mod routing;
mod tenants;
mod turns;
mod versions;
pub(crate) mod webhooks;
pub(crate) mod world;
