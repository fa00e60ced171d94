//! The request that starts or resumes a thread.
//!
//! Codex asks about tools of MCP servers only if they are not read-only and nothing in its configuration approves them.
//! So its configuration is read first, and then each server named there is set to ask about every tool.

use serde_json::{Map, Value, json};

use crate::adapters::codex::{chooses_sandbox, read_only};
use crate::adapters::order::{Order, Session};

#[derive(Default)]
pub(super) struct ThreadRequest {
    method: &'static str,
    params: Value,
    /// Where the configuration is read for.
    cwd: Option<String>,
    read_only: bool,
}

impl ThreadRequest {
    pub(super) fn new(order: &Order) -> Self {
        let read_only = read_only(&order.permissions);
        // `untrusted` is what makes it ask before every command and every change; `user` brings the questions here,
        // whatever its configuration says. Where it may only look, the sandbox holds it and there is nothing to ask.
        let policy = if read_only { "never" } else { "untrusted" };
        let mut params = json!({ "approvalPolicy": policy, "approvalsReviewer": "user" });
        match (chooses_sandbox(&order.args), read_only) {
            (true, _) => {}
            (false, false) => params["sandbox"] = "workspace-write".into(),
            (false, true) => params["config"] = only_reading(),
        }
        if let Some(model) = &order.model {
            params["model"] = model.as_str().into();
        }
        let cwd = order.cwd.to_str().map(str::to_owned);
        let method = match &order.session {
            Session::New(_) => "thread/start",
            Session::Resume(id) => {
                // Else it goes on where it was before. A new one begins where its process does; to name the folder
                // there is to trust it.
                if let Some(cwd) = &cwd {
                    params["cwd"] = cwd.as_str().into();
                }
                params["threadId"] = id.as_str().into();
                params["excludeTurns"] = true.into();
                "thread/resume"
            }
        };
        Self { method, params, cwd, read_only }
    }

    pub(super) fn config_params(&self) -> Value {
        json!({ "cwd": self.cwd })
    }

    /// The method and its parameters, once the configuration is known.
    pub(super) fn call(&self, config: &Value) -> (&'static str, Value) {
        let mut params = self.params.clone();
        let servers = config.get("mcp_servers").and_then(Value::as_object);
        let servers: Map<String, Value> = servers
            .into_iter()
            .flatten()
            .map(|(name, server)| (name.clone(), self.restricted_server(server)))
            .collect();
        if !servers.is_empty() {
            params["config"]["mcp_servers"] = servers.into();
        }
        (self.method, params)
    }

    /// The settings that restrict an MCP server.
    fn restricted_server(&self, server: &Value) -> Value {
        if self.read_only {
            return json!({ "enabled": false });
        }
        let asks = || json!({ "approval_mode": "prompt" });
        let tools = server.get("tools").and_then(Value::as_object);
        let tools: Map<String, Value> = tools.into_iter().flatten().map(|(tool, _)| (tool.clone(), asks())).collect();
        json!({ "default_tools_approval_mode": "prompt", "tools": tools })
    }
}

/// Settings for a sandbox in which everything can be read but a file that does not exist. Where nothing is hidden, a
/// rule in the user's `rules` folder that allows a command would also let it out of the sandbox.
fn only_reading() -> Value {
    let filesystem = json!({ ":root": "read", "/nonexistent": "deny" });
    json!({ "default_permissions": "switchboard", "permissions": { "switchboard": { "filesystem": filesystem } } })
}
