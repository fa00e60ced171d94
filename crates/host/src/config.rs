//! The settings of a server: `switchboard.yaml` under the environment and the flags.
//! A section of `switchboard.yaml` is a file here; its `Default` implementation holds its defaults.

pub mod address;
pub mod agent_name;
pub mod cards;
pub mod ceremonies;
pub mod channels;
pub mod decimal;
pub mod delegation;
pub mod document;
mod earlier_names;
mod environment;
pub mod extensions;
pub mod hub;
pub mod inbox;
pub mod jobs;
pub mod limits;
pub mod log;
pub mod models;
pub mod pricing;
pub mod problem;
mod push_notification;
pub mod regular_file;
pub mod review_mode;
pub mod routes;
pub mod routing;
#[cfg(feature = "schema")]
pub mod schema;
pub mod section;
pub mod server;
pub mod size;
pub mod store;
pub mod streams;
pub mod substitution;
pub mod suggestion;
pub mod tasks;
pub mod time_span;
pub mod value;
pub mod webhooks;
pub mod workspace;

pub use problem::{Origin, Problem, Problems};
pub use section::{Flag, Overrides, Setting};
pub use workspace::Workspace;

use serde::Serialize;

use section::Section;

/// The settings of Switchboard.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(default, deny_unknown_fields, title = "Switchboard")
)]
pub struct Config {
    /// The HTTP server.
    pub server: server::Server,
    /// The store of tasks.
    pub store: store::Store,
    /// What is taken on at once.
    pub limits: limits::Limits,
    /// The times of a task's life.
    pub tasks: tasks::Tasks,
    /// Agents that call agents.
    pub delegation: delegation::Delegation,
    /// Event streams.
    pub streams: streams::Streams,
    /// Agent cards.
    pub cards: cards::Cards,
    /// Language models that agents say they have used, by name: what they cost.
    ///
    /// Each is `{ model: gpt-5-mini, price: { input: 0.25, output: 2 } }`: US dollars for a million tokens. `model` is what
    /// its provider calls it, if that is not the name here. The price counts where an agent reports tokens and no cost,
    /// before `hub.health.pricing.default`.
    pub models: models::Models,
    /// Push notifications.
    pub webhooks: webhooks::Webhooks,
    /// Readers of all tasks.
    pub hub: hub::Hub,
    /// The log.
    pub log: log::Log,
}

impl Config {
    fn read(&mut self, root: &mut Section<'_, '_>) {
        root.section("server", |section| self.server.read(section));
        root.section("store", |section| self.store.read(section));
        root.section("limits", |section| self.limits.read(section));
        root.section("tasks", |section| self.tasks.read(section));
        root.section("delegation", |section| self.delegation.read(section));
        root.section("streams", |section| self.streams.read(section));
        root.section("cards", |section| self.cards.read(section));
        root.read("models", &mut self.models);
        root.section("webhooks", |section| self.webhooks.read(section));
        root.section("hub", |section| self.hub.read(section));
        root.section("log", |section| self.log.read(section));
        if root.is_in_file("agents") {
            root.mark_known("agents");
            root.refuse("agents", "unknown key", "list the agents in agents.yaml, or in a file in agents.d/");
        }
    }
}
