//! `switchboard agents list`: the agents that can be called by name, where they are and whether they can be reached. Without
//! a server, or without a key for it, what the files say.

use std::process::ExitCode;

use serde_json::{Value, json};
use switchboard_fleet::config::FleetConfig;
use switchboard_fleet::config::agents::Kind;
use switchboard_host::printer::Printer;

use super::{all, entry};
use crate::cli::HubFlags;
use crate::commands::calling::hub_client::HubClient;
use crate::commands::calling::{Failure, figures, run as run_async, target};

pub(crate) fn run(flags: &HubFlags, printer: Printer) -> Result<(), ExitCode> {
    run_async(printer, async {
        if flags.server.is_some() {
            let hub = HubClient::open(flags).await?;
            return match all(&hub).await {
                Ok(found) => {
                    print(&hub, found, printer);
                    Ok(())
                }
                Err(error) => Err(error.failure(&hub)),
            };
        }
        let fleet = target::load(&flags.workspace);
        if let Ok(fleet) = &fleet {
            fleet.workspace.unread.iter().for_each(|unread| printer.warning(unread));
        }
        if target::running(&target::settings(&flags.workspace)?).await?.is_none() {
            return without_server(&fleet?, flags, printer).await;
        }
        let hub = HubClient::open(flags).await?;
        match all(&hub).await {
            Ok(found) => print(&hub, found, printer),
            Err(error) if error.is_forbidden() => {
                by_name(&fleet?, &hub, printer).await?;
                printer.note("with a key in A2ACLI_BEARER it shows their skills and whether they can be reached");
            }
            Err(error) => return Err(error.failure(&hub)),
        }
        Ok(())
    })
}

fn print(hub: &HubClient, (agents, problems): (Vec<Value>, Vec<Value>), printer: Printer) {
    let address = |agent: &Value| match (agent["served"] == false, agent["url"].as_str()) {
        (true, Some(url)) => url.to_owned(),
        _ => hub.agent_address(agent["name"].as_str().unwrap_or_default()),
    };
    if printer.is_json() {
        let mut agents = agents;
        for agent in &mut agents {
            agent["address"] = address(agent).into();
        }
        return printer.json(&json!({ "serverRuns": true, "agents": agents, "problems": problems }));
    }
    let rows = agents.iter().map(|agent| {
        let (name, kind) = (figures::text(&agent["name"]), figures::text(&agent["kind"]));
        [name, kind, entry::state(agent), entry::skills(agent), address(agent)]
    });
    printer.titled_table(["AGENT", "KIND", "STATE", "SKILLS", "ADDRESS"], rows);
    for problem in problems {
        printer.warning(&match problem.as_str() {
            Some(text) => text.to_owned(),
            None => problem.to_string(),
        });
    }
    for agent in agents.iter().filter(|agent| agent["held"].is_object()) {
        let name = figures::text(&agent["name"]);
        printer.note(&format!("the card of {name} has changed and is held: {}", hub.command("agents accept", &name)));
    }
}

/// The names that the server has at its control socket, which needs no key.
async fn by_name(fleet: &FleetConfig, hub: &HubClient, printer: Printer) -> Result<(), Failure> {
    let served = target::running(&fleet.workspace).await?.map(|status| status.agents).unwrap_or_default();
    let mut agents: Vec<ListedAgent> = Vec::new();
    for name in served {
        let address = Some(hub.agent_address(&name));
        agents.push(ListedAgent { kind: kind(fleet, &name), name, address });
    }
    agents.extend(
        elsewhere(fleet).filter(|agent| agents.iter().all(|known| known.name != agent.name)).collect::<Vec<_>>(),
    );
    print_plain(&agents, true, printer);
    Ok(())
}

async fn without_server(fleet: &FleetConfig, flags: &HubFlags, printer: Printer) -> Result<(), Failure> {
    let hosted = fleet.agents.iter().map(|agent| {
        let name = agent.name.to_string();
        ListedAgent { kind: kind(fleet, &name), name, address: None }
    });
    let agents: Vec<ListedAgent> = hosted.chain(elsewhere(fleet)).collect();
    print_plain(&agents, false, printer);
    if !printer.is_json() && agents.iter().any(|agent| agent.address.is_none()) {
        let url = target::default_url(&fleet.workspace);
        printer.note(&match target::is_answered(&url).await {
            true => format!("something listens at {url}: send, chat and task try it for these names"),
            false => {
                format!("next: switchboard serve{} starts the server that hosts them", flags.workspace.again())
            }
        });
    }
    Ok(())
}

/// An agent of which no more is known.
struct ListedAgent {
    name: String,
    kind: &'static str,
    /// None while no server runs.
    address: Option<String>,
}

fn elsewhere(fleet: &FleetConfig) -> impl Iterator<Item = ListedAgent> {
    let remotes = fleet.remotes.iter();
    remotes.map(|remote| ListedAgent {
        name: remote.name.to_string(),
        kind: "url",
        address: Some(remote.url.as_str().to_owned()),
    })
}

fn kind(fleet: &FleetConfig, name: &str) -> &'static str {
    let hosted = fleet.agents.iter().find(|agent| agent.name.as_str() == name);
    match hosted.map(|agent| &agent.kind) {
        Some(Kind::Builtin(_)) => "builtin",
        Some(Kind::Cli(_)) => "cli",
        // What is in no file is registered, and those are all elsewhere.
        None => "url",
    }
}

fn print_plain(agents: &[ListedAgent], server_runs: bool, printer: Printer) {
    if printer.is_json() {
        let agents = agents
            .iter()
            .map(|ListedAgent { name, kind, address }| json!({ "name": name, "kind": kind, "address": address }));
        let agents: Vec<Value> = agents.collect();
        return printer.json(&json!({ "serverRuns": server_runs, "agents": agents }));
    }
    let rows = agents.iter().map(|ListedAgent { name, kind, address }| {
        [name.clone(), (*kind).to_owned(), address.clone().unwrap_or_else(|| "no server runs".to_owned())]
    });
    printer.titled_table(["AGENT", "KIND", "ADDRESS"], rows);
}
