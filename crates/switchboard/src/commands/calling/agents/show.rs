//! `switchboard agents show`: what is known of one agent.

use std::process::ExitCode;

use http::Method;
use serde_json::Value;
use switchboard_host::printer::Printer;

use super::{NamedAgent, entry, failed, unknown};
use crate::cli::HubFlags;
use crate::commands::calling::hub_client::HubClient;
use crate::commands::calling::{Failure, figures, run as run_async, sanitize};

pub(crate) fn run(flags: &HubFlags, NamedAgent { name }: &NamedAgent, printer: Printer) -> Result<(), ExitCode> {
    run_async(printer, async {
        let hub = HubClient::open(flags).await?;
        let agent = read(&hub, name).await?;
        if printer.is_json() {
            printer.json(&agent);
            return Ok(());
        }
        print(&hub, &agent, printer);
        let mut url = hub.url(&["api", "health"]);
        url.query_pairs_mut().append_pair("agent", name);
        // How it does is a bonus; what is known of it is shown without.
        if let Ok(health) = hub.get(url).await
            && let Some(figures) = health["agents"].as_array().and_then(|agents| agents.first())
        {
            print_health(figures, printer);
        }
        Ok(())
    })
}

pub(super) async fn read(hub: &HubClient, name: &str) -> Result<Value, Failure> {
    match hub.call(Method::GET, hub.url(&["api", "agents", name]), None).await {
        Ok(agent) if agent["name"] == name => Ok(agent),
        // Another endpoint has answered, such as `/api/agents/runtime`.
        Ok(_) => Err(unknown(hub, name).await),
        Err(error) => Err(failed(hub, name, error).await),
    }
}

pub(super) fn print(hub: &HubClient, agent: &Value, printer: Printer) {
    let name = figures::text(&agent["name"]);
    let address = if agent["served"] == false { "none: it is not served".to_owned() } else { hub.agent_address(&name) };
    let mut fields = vec![
        ("name", name.clone()),
        ("kind", figures::text(&agent["kind"])),
        ("state", entry::state(agent)),
        ("source", entry::source(agent)),
        ("description", figures::text(&agent["description"])),
        ("address", address),
    ];
    let has_url = agent["url"].is_string();
    fields.extend(has_url.then(|| ("called at", figures::text(&agent["url"]))));
    let headers: Vec<&str> = agent["headers"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    fields.extend((!headers.is_empty()).then(|| ("headers", sanitize::line(&headers.join(", ")))));
    fields.extend(entry::probe(agent).map(|probe| ("last look", probe)));
    fields.extend(agent["breaker"].as_str().map(|breaker| ("breaker", breaker.replace('_', " "))));
    if let Some(etag) = agent["held"]["etag"].as_str() {
        let etag = sanitize::line(etag);
        fields.push(("held card", format!("{etag}; {}", hub.command("agents accept", &name))));
    }
    printer.fields(fields);
    let skills = agent["skills"].as_array().map(Vec::as_slice).unwrap_or_default();
    if skills.is_empty() {
        return;
    }
    printer.line("");
    let rows = skills.iter().map(|skill| ["id", "name", "from"].map(|member| figures::text(&skill[member])));
    printer.titled_table(["SKILL", "NAME", "FROM"], rows);
}

fn print_health(health: &Value, printer: Printer) {
    printer.line("");
    printer.fields([
        ("tasks ended, 24 h", figures::count(&health["outcomes"])),
        ("succeeded", figures::percent(&health["successRate"])),
        ("half done within", figures::duration(&health["p50Ms"])),
        ("95% done within", figures::duration(&health["p95Ms"])),
        ("cost", figures::dollars(&health["costUsd"])),
    ]);
}
