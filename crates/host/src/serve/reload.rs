//! Reloads the configuration of a running server and applies what can change: the allowlist of webhooks, the nameservers,
//! the rules of routing and the variables that registrations may use. Every other changed key is reported as needing a restart.

use std::sync::Arc;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use switchboard_egress::Egress;

use crate::config::{Config, Problems, Setting, Workspace};

/// The keys that a running server can change.
const APPLIED: [&str; 8] = [
    "webhooks.allowedHosts",
    "webhooks.allowedCidrs",
    "webhooks.nameservers",
    "hub.registrations.env",
    "hub.roles.helm",
    "hub.routing.unknownSkill",
    "hub.routing.keywords",
    "hub.routing.cooldowns",
];

/// Reads a workspace as it is now.
pub type WorkspaceReader = Box<dyn Fn() -> Result<Workspace, Problems> + Send + Sync>;

/// Parts of the server that take up changed settings. Clones share the list.
#[derive(Clone, Default)]
pub struct ReloadListeners(Arc<Mutex<Vec<ReloadListener>>>);

type ReloadListener = Box<dyn Fn(&Config) + Send + Sync>;

impl ReloadListeners {
    /// Calls a function with the configuration whenever it was read again.
    pub fn listen(&self, listener: impl Fn(&Config) + Send + Sync + 'static) {
        self.0.lock().push(Box::new(listener));
    }

    /// Tells all of them.
    pub fn tell(&self, config: &Config) {
        for listener in self.0.lock().iter() {
            listener(config);
        }
    }
}

/// The result of a reload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReloadReport {
    /// Keys whose new values are in force.
    pub applied: Vec<String>,
    /// Keys whose new values need a restart.
    pub needs_restart: Vec<String>,
    /// What is not wrong but probably not meant.
    pub warnings: Vec<String>,
}

/// Reloads the configuration.
pub struct Reloader {
    read: WorkspaceReader,
    egress: Egress,
    listeners: ReloadListeners,
    /// The lock allows one reload at a time.
    active: Mutex<ActiveConfig>,
}

struct ActiveConfig {
    settings: Vec<Setting>,
    agents: Vec<Value>,
}

impl Reloader {
    /// One for a server that was started with a workspace.
    pub(super) fn new(
        started_with: &Workspace,
        read: WorkspaceReader,
        egress: Egress,
        listeners: ReloadListeners,
    ) -> Self {
        let active = ActiveConfig { settings: started_with.settings.clone(), agents: started_with.agents.clone() };
        Self { read, egress, listeners, active: Mutex::new(active) }
    }

    /// Reloads it. If anything is wrong, nothing changes.
    pub fn reload(&self) -> Result<ReloadReport, Problems> {
        let mut active = self.active.lock();
        let workspace = (self.read)()?;
        let webhooks = &workspace.config.webhooks;
        // Even without a change: the system's own nameservers may be others now.
        self.egress.reload(webhooks.allowlist(), &webhooks.nameserver_addresses());
        self.listeners.tell(&workspace.config);
        let (mut applied, mut needs_restart) = (Vec::new(), Vec::new());
        for new in workspace.settings {
            let Some(old) = active.settings.iter_mut().find(|old| old.key == new.key) else { continue };
            if old.value == new.value {
                continue;
            }
            if APPLIED.contains(&new.key.as_str()) {
                applied.push(new.key.clone());
                *old = new;
            } else {
                needs_restart.push(new.key);
            }
        }
        if active.agents != workspace.agents {
            needs_restart.push("agents".to_owned());
        }
        Ok(ReloadReport { applied, needs_restart, warnings: workspace.warnings })
    }

    /// Reloads on a signal, with the result in the log.
    pub(crate) fn reload_and_log(&self) {
        match self.reload() {
            Ok(ReloadReport { applied, needs_restart, warnings }) => {
                for warning in warnings {
                    tracing::warn!("{warning}");
                }
                let (applied, needs_restart) = (applied.join(", "), needs_restart.join(", "));
                tracing::info!(applied, needs_restart, "the configuration was read again");
            }
            Err(Problems(problems)) => {
                for problem in problems {
                    tracing::error!("{problem}");
                }
                tracing::error!("the configuration was read again, and nothing has changed because it has problems");
            }
        }
    }
}
