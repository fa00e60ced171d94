//! What the edge does before and around the bindings.

mod agents;
mod bodies;
mod callers;
mod connections;
mod guards;
mod keyring;
mod operations;
mod running;
mod stopping;
mod traces;
mod unread;
mod wire;
