//! `switchboard agents`: the agents that can be called by name, and where they are.

use std::process::ExitCode;

use serde::Serialize;
use serde_json::json;
use switchboard_host::printer::Printer;

use crate::cli::DataFlags;
use crate::commands::calling::{run as run_async, target};

#[derive(Serialize)]
struct ListedAgent {
    name: String,
    kind: &'static str,
    /// None while no server runs.
    url: Option<String>,
}

pub(crate) fn run(flags: &DataFlags, printer: Printer) -> Result<(), ExitCode> {
    run_async(printer, async {
        let fleet = target::load(flags)?;
        let workspace = &fleet.workspace;
        workspace.unread.iter().for_each(|unread| printer.warning(unread));
        let server = target::running(workspace).await?;
        let base = server.as_ref().map(target::base);
        let configured = || fleet.agents.iter().map(|agent| agent.name.to_string()).collect();
        let hosted: Vec<String> = server.map_or_else(configured, |status| status.agents);
        let mut agents: Vec<ListedAgent> = hosted
            .into_iter()
            .map(|name| {
                let url = base.as_ref().map(|base| format!("{base}/a2a/{name}"));
                ListedAgent { name, kind: "hosted", url }
            })
            .collect();
        agents.extend(fleet.remotes.iter().map(|remote| ListedAgent {
            name: remote.name.to_string(),
            kind: "remote",
            url: Some(remote.url.as_str().to_owned()),
        }));
        if printer.is_json() {
            printer.json(&json!({ "serverRuns": base.is_some(), "agents": agents }));
            return Ok(());
        }
        let is_idle = base.is_none() && agents.iter().any(|agent| agent.url.is_none());
        let mut rows = vec![["AGENT", "KIND", "ADDRESS"].map(str::to_owned)];
        rows.extend(agents.into_iter().map(|agent| {
            [agent.name, agent.kind.to_owned(), agent.url.unwrap_or_else(|| "no server runs".to_owned())]
        }));
        printer.table(&rows);
        if is_idle {
            let url = target::default_url(workspace);
            printer.note(&match target::is_answered(&url).await {
                true => format!("something listens at {url}: send, chat and task try it for these names"),
                false => format!("next: switchboard serve{} starts the server that hosts them", flags.again()),
            });
        }
        Ok(())
    })
}
