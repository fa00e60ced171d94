//! The parts of a server that the tests of the program do not take apart: setting types, keys, demo agents and hosting.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

mod earlier_names;
mod hosting;
mod kernel;
mod key_ring;
mod pricing;
mod probe;
mod sanitize;
#[cfg(feature = "schema")]
mod setting_schema;
mod setting_types;
#[cfg(not(feature = "nameservers"))]
mod without_features;
mod yaml_documents;
