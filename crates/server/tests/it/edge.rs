//! What the edge does before and around the bindings.

mod agents;
mod bodies;
mod callers;
mod certificates;
mod connections;
mod fronts;
mod graceful_shutdown;
mod guards;
mod keyring;
mod operations;
mod proxies;
mod response_budget;
mod running;
mod secured;
mod slow_clients;
mod tls;
mod traces;
mod wire;
