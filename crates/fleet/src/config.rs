//! What a workspace folder says beyond the settings of its server: the agents that are served, and those elsewhere.

pub mod agent_files;
pub mod agents;
pub mod cli_agent;
pub mod delegation;
pub mod fleet;
mod output_schema;
mod path_text;
pub mod remote_access;
pub mod remote_agent;
pub mod remote_serving;
pub mod rest_files;
pub mod skill;
pub mod skill_effect;

pub use fleet::FleetConfig;
