//! What the edge does before and around the bindings.

mod agents;
mod bodies;
mod callers;
mod certificates;
mod connections;
mod guards;
mod keyring;
mod operations;
mod proxies;
mod response_budget;
mod running;
mod secured;
mod stopping;
mod tls;
mod traces;
mod unread;
mod wire;
