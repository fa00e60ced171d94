//! `switchboard keys create`: makes a key and shows it once.

use std::process::ExitCode;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde_json::json;
use switchboard_engine::CallerRole;
use switchboard_host::config::agent_name::AgentName;
use switchboard_host::config::time_span::TimeSpan;
use switchboard_host::control::Request;
use switchboard_host::keys::{CreatedKey, KeyAgents, KeyScopes, NewKey};
use switchboard_host::printer::Printer;

use crate::cli::{DataFlags, scalar};
use crate::commands::{loaded_fleet, refused, short};
use crate::control_client::request;
use switchboard_fleet::config::FleetConfig;

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct CreateKeyOptions {
    /// Name to find it by later
    #[arg(long, default_value = "", hide_default_value = true)]
    name: String,

    /// Agents it may call: all, or their names with commas between
    #[arg(long, value_name = "all|NAME,NAME", default_value = "all", value_parser = agents)]
    agents: KeyAgents,

    /// What it may do with other callers' work at its agents: nothing, see it, change it too, or everything
    #[arg(long, value_name = "ROLE", default_value = "none", value_parser = roles())]
    role: CallerRole,

    /// The same as --role admin
    #[arg(long, conflicts_with = "role")]
    admin: bool,

    /// Time after which it is refused, such as 30d; without it never
    #[arg(long, value_name = "TIME", value_parser = time_span)]
    expires: Option<TimeSpan>,
}

pub(crate) fn run(flags: &DataFlags, options: CreateKeyOptions, printer: Printer) -> Result<(), ExitCode> {
    let fleet = loaded_fleet(flags, printer)?;
    warn_of_unknown_agents(&options.agents, &fleet, printer);
    let role = if options.admin { CallerRole::Admin } else { options.role };
    let new = NewKey {
        name: options.name,
        scopes: KeyScopes { agents: options.agents, role },
        expires_in_ms: options.expires.map(|span| u64::try_from(span.duration().as_millis()).unwrap_or(u64::MAX)),
    };
    let sent = short(printer, request(&fleet.workspace, Request::CreateKey(new)))?;
    let (created, is_server) = sent.map_err(refused(flags, printer))?;
    print(&created, is_server, printer);
    Ok(())
}

fn print(created: &CreatedKey, running: bool, printer: Printer) {
    if printer.is_json() {
        printer.json(&json!({ "key": created, "inForce": running }));
        return;
    }
    let key = &created.key;
    let scopes = key.scopes.as_ref();
    let never = || "never".to_owned();
    printer.fields([
        ("key", created.secret.clone()),
        ("id", key.id.clone()),
        ("name", if key.name.is_empty() { "-".to_owned() } else { key.name.clone() }),
        ("agents", scopes.map(|scopes| scopes.agents.shown()).unwrap_or_default()),
        ("role", scopes.map(|scopes| scopes.role.to_string()).unwrap_or_default()),
        ("expires", key.expires_at.map_or_else(never, |at| at.to_string())),
    ]);
    printer.line("");
    printer.line("this is the only time the key is shown; send it as `Authorization: Bearer KEY` or `X-API-Key: KEY`");
    printer.line(match (created.first, running) {
        (true, true) => "it is the first key: from now on the running server refuses every request without one",
        (true, false) => "it is the first key: once a server runs on this data, it refuses every request without one",
        (false, true) => "the running server knows it already",
        (false, false) => "a server that runs on this data will know it",
    });
    if created.first {
        printer.line("tasks that were sent without a key belong to the caller local, and no key can see them");
    }
}

/// A mistyped name would only show as refused calls, much later.
fn warn_of_unknown_agents(agents: &KeyAgents, fleet: &FleetConfig, printer: Printer) {
    let KeyAgents::Only(names) = agents else { return };
    for name in names {
        if !fleet.agents.iter().any(|agent| agent.name.as_str() == name) {
            let known: Vec<&str> = fleet.agents.iter().map(|agent| agent.name.as_str()).collect();
            printer.warning(&format!("this workspace has no agent {name}; it has {}", known.join(", ")));
        }
    }
}

fn agents(text: &str) -> Result<KeyAgents, String> {
    if text == "all" {
        return Ok(KeyAgents::All);
    }
    let names = text.split(',').map(|name| scalar(name.trim()).map(|name: AgentName| name.as_str().to_owned()));
    Ok(KeyAgents::Only(names.collect::<Result<_, _>>()?))
}

fn roles() -> impl TypedValueParser<Value = CallerRole> {
    PossibleValuesParser::new(CallerRole::ALL.map(CallerRole::name)).try_map(|name| name.parse())
}

fn time_span(text: &str) -> Result<TimeSpan, String> {
    match scalar(text)? {
        TimeSpan::ZERO => {
            Err("a key that expires at once is of no use: write a length of time, such as 30d".to_owned())
        }
        span => Ok(span),
    }
}
