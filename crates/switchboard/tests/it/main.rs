//! Tests of the real binary, one module per command.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

mod calling;
mod cli_agents_page;
mod config_check;
mod config_cli_agent_errors;
mod config_cli_agents;
mod config_errors;
mod config_schema;
mod control_socket;
mod db;
mod doc_links;
mod doctor;
mod http;
mod hub_agents;
mod hub_ceremonies;
mod hub_dispatch;
mod hub_feed;
mod hub_health;
mod hub_inbox;
mod hub_metrics;
mod hub_plan;
mod hub_routes;
mod kept_dead_letters;
mod keys;
mod limits;
mod live_tasks;
mod lost_log;
mod metrics;
mod output_schemas;
mod printed_commands;
mod program;
mod readme;
mod receiver;
mod refused_starts;
mod reload;
mod serve;
mod server;
mod stopped_programs;
mod task_tokens;
mod tls;
mod usage;
mod webhook_log;
mod webhooks;
