//! `switchboard health`: how agents do, and which alerts fire.

use std::process::ExitCode;

use http::Method;
use serde_json::{Value, json};
use switchboard_host::printer::Printer;

use super::hub_client::HubClient;
use super::{figures, run as run_async, sanitize};
use crate::cli::HubFlags;

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct HealthOptions {
    /// Only this agent, with its last failures
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,

    /// Only tasks that asked for this skill
    #[arg(long, value_name = "ID", conflicts_with = "caller")]
    skill: Option<String>,

    /// Only tasks of this caller, by the id of its key
    #[arg(long, value_name = "ID")]
    caller: Option<String>,

    /// How far to look back: 1h or 24h
    #[arg(long, value_name = "TIME", default_value = "24h", value_parser = ["1h", "24h"], hide_possible_values = true)]
    window: String,
}

pub(crate) fn run(flags: &HubFlags, options: &HealthOptions, printer: Printer) -> Result<(), ExitCode> {
    run_async(printer, async {
        let hub = HubClient::open(flags).await?;
        let mut url = hub.url(&["api", "health"]);
        let HealthOptions { agent, skill, caller, window } = options;
        let window = Some(window.clone());
        for (name, value) in [("agent", agent), ("skill", skill), ("caller", caller), ("window", &window)] {
            if let Some(value) = value {
                url.query_pairs_mut().append_pair(name, value);
            }
        }
        let health = hub.get(url).await?;
        // A key without a role sees how its own tasks went, and no alerts.
        let alerts = hub.call(Method::GET, hub.url(&["api", "alerts"]), None).await;
        let alerts = match alerts {
            Ok(mut answer) => answer["items"].take(),
            Err(error) if error.is_forbidden() => Value::Null,
            Err(error) => return Err(error.failure(&hub)),
        };
        let alerts: Option<Vec<&Value>> = alerts.as_array().map(|all| {
            let is_wanted = |alert: &&Value| agent.as_ref().is_none_or(|agent| alert["agent"] == agent.as_str());
            all.iter().filter(is_wanted).collect()
        });
        if printer.is_json() {
            let mut answer = health;
            answer["alerts"] = json!(alerts);
            printer.json(&answer);
            return Ok(());
        }
        print(&health, options, printer);
        print_alerts(alerts.as_deref(), printer);
        Ok(())
    })
}

fn print(health: &Value, options: &HealthOptions, printer: Printer) {
    let agents = health["agents"].as_array().map(Vec::as_slice).unwrap_or_default();
    if agents.is_empty() {
        return printer.line(format!("no task has ended in the last {}", options.window));
    }
    let mut rows: Vec<[String; 8]> = agents.iter().map(|agent| row(figures::text(&agent["agent"]), agent)).collect();
    if rows.len() > 1 {
        rows.push(row("all".to_owned(), &health["totals"]));
    }
    let titles = ["AGENT", "ENDED", "SUCCEEDED", "P50", "P95", "COST", "COST/SUCCESS", "FAILED 1H"];
    printer.titled_table(titles, rows);
    if agents.iter().any(|agent| agent["estimated"].as_u64().is_some_and(|count| count > 0)) {
        printer.note("costs are estimated in part: tokens times their price, where an agent does not say");
    }
    for agent in agents {
        print_orphans(agent, printer);
    }
    if options.agent.is_some() {
        agents.iter().for_each(|agent| print_failures(agent, printer));
    }
}

fn row(name: String, figures: &Value) -> [String; 8] {
    [
        name,
        figures::count(&figures["outcomes"]),
        figures::percent(&figures["successRate"]),
        figures::duration(&figures["p50Ms"]),
        figures::duration(&figures["p95Ms"]),
        figures::dollars(&figures["costUsd"]),
        figures::dollars(&figures["costPerSuccess"]),
        figures::percent(&figures["failureRate1h"]),
    ]
}

fn print_orphans(agent: &Value, printer: Printer) {
    let skills = agent["orphanedSkills"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let skills: Vec<String> = skills.map(sanitize::line).collect();
    if !skills.is_empty() {
        let name = figures::text(&agent["agent"]);
        printer.note(&format!("no success in 24 h: {name} with {}", skills.join(", ")));
    }
}

fn print_failures(agent: &Value, printer: Printer) {
    let failures = agent["recentFailures"].as_array().map(Vec::as_slice).unwrap_or_default();
    if failures.is_empty() {
        return;
    }
    printer.line("");
    let rows =
        failures.iter().map(|failure| ["at", "state", "skill", "taskId"].map(|member| figures::text(&failure[member])));
    printer.titled_table(["FAILED AT", "STATE", "SKILL", "TASK"], rows);
}

fn print_alerts(alerts: Option<&[&Value]>, printer: Printer) {
    let Some(alerts) = alerts else { return };
    if alerts.is_empty() {
        return;
    }
    let mut alerts = alerts.to_vec();
    alerts.sort_by_key(|alert| alert["state"] != "firing");
    printer.line("");
    let rows: Vec<[String; 5]> = alerts
        .iter()
        .map(|alert| {
            let since = if alert["state"] == "firing" { "firedAt" } else { "resolvedAt" };
            let members = ["alert", "subject", "state", since].map(|member| figures::text(&alert[member]));
            let [name, subject, state, since] = members;
            [name, subject, state, since, detail(&alert["detail"])]
        })
        .collect();
    let has_detail = rows.iter().any(|[.., detail]| !detail.is_empty());
    printer.titled_table(["ALERT", "ABOUT", "STATE", "SINCE", if has_detail { "DETAIL" } else { "" }], rows);
}

/// The members of an object, each with its value.
fn detail(detail: &Value) -> String {
    let members = detail.as_object().into_iter().flatten();
    let members = members.map(|(name, value)| match value.as_str() {
        Some(text) => format!("{name} {}", sanitize::line(text)),
        None => format!("{name} {value}"),
    });
    members.collect::<Vec<_>>().join(", ")
}
