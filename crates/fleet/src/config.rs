//! What a workspace folder says beyond the settings of its server: the agents that are served, and those elsewhere.

pub mod agent_files;
pub mod agents;
pub mod cli_agent;
pub mod delegation;
mod drop_ins;
pub mod fleet;
pub mod named_files;
mod output_schema;
mod path_text;
pub mod policy;
pub mod remote_access;
pub mod remote_agent;
pub mod remote_serving;
pub mod rest_files;
pub mod skill;
pub mod skill_effect;

pub use fleet::FleetConfig;
