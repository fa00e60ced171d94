//! `switchboard plan`: which skills are expected to move a value the wanted way; on request the best one is given the work.

use std::process::ExitCode;

use http::Method;
use serde_json::{Value, json};
use switchboard_host::printer::Printer;

use super::hub_client::HubClient;
use super::{figures, run as run_async, sanitize};
use crate::cli::HubFlags;

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct PlanOptions {
    /// Part of the world, such as board
    domain: String,

    /// Where in it, such as data.open
    path: String,

    /// Which way the value should go: up or down
    #[arg(value_parser = ["up", "down"], hide_possible_values = true)]
    want: String,

    /// Show at most so many skills
    #[arg(long, value_name = "COUNT", default_value_t = 5, value_parser = clap::value_parser!(u8).range(1..=100))]
    limit: u8,

    /// Give the best one this message, as a task of yours
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    dispatch: Option<String>,
}

pub(crate) fn run(flags: &HubFlags, options: &PlanOptions, printer: Printer) -> Result<(), ExitCode> {
    let PlanOptions { domain, path, want, limit, dispatch } = options;
    run_async(printer, async {
        let hub = HubClient::open(flags).await?;
        let mut body = json!({ "domain": domain, "path": path, "want": want, "limit": limit });
        if let Some(text) = dispatch {
            body["dispatch"] = json!({ "message": text });
        }
        let nobody = "skills declare what they change under effects, in agents.yaml or on their agent's card";
        let answer = hub.call(Method::POST, hub.url(&["api", "plan"]), Some(&body)).await;
        let plan = answer.map_err(|error| {
            let next = if error.is_code("NOT_FOUND") { nobody } else { "" };
            error.failure_with(&hub, next)
        })?;
        if printer.is_json() {
            printer.json(&plan);
            return Ok(());
        }
        let candidates = plan["candidates"].as_array().map(Vec::as_slice).unwrap_or_default();
        if candidates.is_empty() {
            let goal = format!("{} {}", sanitize::line(domain), sanitize::line(path));
            printer.line(format!("no skill that you may call is declared to move {goal} {want}"));
            printer.note(nobody);
            return Ok(());
        }
        printer.titled_table(["AGENT", "SKILL", "SCORE", "DELTA", "TRUST", "TASKS 24H"], candidates.iter().map(row));
        if let (Some(task), Some(best)) = (plan["taskId"].as_str(), candidates.first()) {
            let task = sanitize::line(task);
            printer.line(format!("task: {task}"));
            let agent = hub.agent_address(best["agent"].as_str().unwrap_or_default());
            printer.note(&format!("next: switchboard task get {} {task} --wait", sanitize::shell_word(&agent)));
        }
        Ok(())
    })
}

fn row(candidate: &Value) -> [String; 6] {
    let number = |value: &Value| value.as_f64().map_or_else(|| "-".to_owned(), |number| format!("{number:.2}"));
    [
        figures::text(&candidate["agent"]),
        figures::text(&candidate["skill"]),
        number(&candidate["score"]),
        number(&candidate["delta"]),
        number(&candidate["trust"]),
        figures::count(&candidate["samples"]),
    ]
}
