//! `switchboard agents probe`: what the server finds at an address.

use std::process::ExitCode;

use http::Method;
use serde_json::{Value, json};
use switchboard_host::printer::Printer;

use crate::cli::HubFlags;
use crate::commands::calling::hub_client::HubClient;
use crate::commands::calling::{Failure, figures, run as run_async, sanitize};

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ProbeOptions {
    /// Address of the agent, or of its card
    url: String,
}

pub(crate) fn run(flags: &HubFlags, ProbeOptions { url }: &ProbeOptions, printer: Printer) -> Result<(), ExitCode> {
    run_async(printer, async {
        let hub = HubClient::open(flags).await?;
        let found = look(&hub, url).await?;
        if found["reachable"] != true {
            let failure = unreachable(&found, url);
            return Err(failure);
        }
        if printer.is_json() {
            printer.json(&found);
            return Ok(());
        }
        let versions: Vec<&str> =
            found["versions"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        printer.fields([
            ("name", figures::text(&found["name"])),
            ("description", figures::text(&found["description"])),
            ("card", figures::text(&found["cardUrl"])),
            ("versions", sanitize::line(&versions.join(", "))),
        ]);
        let skills = found["skills"].as_array().map(Vec::as_slice).unwrap_or_default();
        if !skills.is_empty() {
            printer.line("");
            let rows =
                skills.iter().map(|skill| ["id", "name", "description"].map(|member| figures::text(&skill[member])));
            printer.titled_table(["SKILL", "NAME", "DESCRIPTION"], rows);
        }
        printer.note(&format!("next: {}", hub.command("agents add", &sanitize::shell_word(url))));
        Ok(())
    })
}

/// What the server sees there.
pub(super) async fn look(hub: &HubClient, url: &str) -> Result<Value, Failure> {
    let body = json!({ "url": url });
    let answer = hub.call(Method::POST, hub.url(&["api", "a2a", "probe"]), Some(&body)).await;
    answer.map_err(|error| error.failure_with(hub, "write an address such as https://agent.example"))
}

pub(super) fn unreachable(found: &Value, url: &str) -> Failure {
    let problems = found["problems"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let problems: Vec<String> = problems.map(sanitize::line).collect();
    let message = format!("the server finds no agent at {}: {}", sanitize::line(url), problems.join("; "));
    Failure::no_agent(message, "check the address, and whether the agent runs")
}
