//! The hub through its public interface: a whole server in this process, on a port of its own.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod actor;
mod agents;
mod alerts;
mod api;
mod audit;
mod bounded_reads;
mod bus;
mod canceled_outcomes;
mod card_server;
mod ceremonies;
mod channels;
mod chat;
mod cooldowns;
mod counted_store;
mod dispatch;
mod documented_paths;
mod edited_out;
mod endpoint_paths;
mod experiments;
mod families;
mod fanout;
mod feed;
mod fleet_health;
mod gates;
mod health;
mod inbox;
mod job_runner;
mod kills;
mod long_names;
mod output_schemas;
mod overview;
mod planner;
mod raw_values;
mod receiver;
mod registry_faults;
mod registry_files;
mod registry_probes;
mod registry_registrations;
mod registry_serves;
mod registry_tombstones;
mod registry_variables;
mod remote;
mod rendezvous;
mod routes;
mod routing;
mod routing_directory;
mod routing_signals;
mod running;
mod store_refusals;
mod subscribe;
mod tasks;
mod waiting_beside_poll;

/// What has not happened after so long never will. It says nothing about speed.
const HANG_GUARD: std::time::Duration = std::time::Duration::from_secs(300);
