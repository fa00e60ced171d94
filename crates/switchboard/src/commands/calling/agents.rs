//! `switchboard agents`: the agents that can be called by name, and where they are.

use std::process::ExitCode;

use serde_json::{Value, json};
use switchboard_host::printer::Printer;

use crate::cli::DataFlags;
use crate::commands::calling::{run as run_async, target};

pub(crate) fn run(flags: &DataFlags, printer: Printer) -> Result<(), ExitCode> {
    run_async(printer, async {
        let fleet = target::load(flags)?;
        let workspace = &fleet.workspace;
        workspace.unread.iter().for_each(|unread| printer.warning(unread));
        let server = target::running(workspace).await?;
        let base = server.as_ref().map(target::base);
        let configured = || fleet.agents.iter().map(|agent| agent.name.to_string()).collect();
        let hosted: Vec<String> = server.map_or_else(configured, |status| status.agents);
        // Name, kind, and the address unless no server runs.
        let mut agents: Vec<(String, &str, Option<String>)> = Vec::new();
        // One that is elsewhere and served here is listed once, by its own address: that is what commands call.
        let is_remote = |name: &String| fleet.remotes.iter().any(|remote| remote.name.as_str() == name);
        for name in hosted.into_iter().filter(|name| !is_remote(name)) {
            let url = base.as_ref().map(|base| format!("{base}/a2a/{name}"));
            agents.push((name, "hosted", url));
        }
        let remotes = fleet.remotes.iter();
        agents.extend(remotes.map(|remote| (remote.name.to_string(), "remote", Some(remote.url.as_str().to_owned()))));
        if printer.is_json() {
            let agents = agents.iter().map(|(name, kind, url)| json!({ "name": name, "kind": kind, "url": url }));
            let agents: Vec<Value> = agents.collect();
            printer.json(&json!({ "serverRuns": base.is_some(), "agents": agents }));
            return Ok(());
        }
        let is_idle = base.is_none() && agents.iter().any(|(_, _, url)| url.is_none());
        let no_server = || "no server runs".to_owned();
        let rows = agents.into_iter().map(|(name, kind, url)| [name, kind.to_owned(), url.unwrap_or_else(no_server)]);
        printer.titled_table(["AGENT", "KIND", "ADDRESS"], rows);
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
