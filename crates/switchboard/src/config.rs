//! What a workspace folder says beyond the settings of its server: the agents that are served, and those elsewhere.

/// Implements `JsonSchema` for a setting with its own text form. Unlike a derived schema it takes no description from
/// the doc comment, which would repeat the description of every key of that type.
macro_rules! json_schema_of {
    ($setting:ident, $schema:tt) => {
        impl schemars::JsonSchema for $setting {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($setting).into()
            }

            fn json_schema(_generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!($schema)
            }
        }
    };
}

pub mod agents;
pub mod cli_agent;
pub mod fleet;
mod path_text;
pub mod remote_access;
pub mod remote_agent;
pub mod rest_files;

pub use fleet::FleetConfig;
