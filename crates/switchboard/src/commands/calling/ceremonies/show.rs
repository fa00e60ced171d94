//! `switchboard ceremonies show`: one ceremony, its next runs and what was last.

use std::process::ExitCode;

use http::Method;
use serde_json::Value;
use switchboard_host::printer::Printer;

use super::{NamedCeremony, failed, last, what, when};
use crate::cli::HubFlags;
use crate::commands::calling::hub_client::HubClient;
use crate::commands::calling::{figures, run as run_async, sanitize};

/// Members that are shown as they are.
const PLAIN: [&str; 7] = ["description", "fanout", "missed", "overlap", "jitter", "timeout", "notifyChannel"];

pub(crate) fn run(flags: &HubFlags, options: &NamedCeremony, printer: Printer) -> Result<(), ExitCode> {
    let NamedCeremony { id } = options;
    run_async(printer, async {
        let hub = HubClient::open(flags).await?;
        let ceremony = match hub.call(Method::GET, hub.url(&["api", "ceremonies", id]), None).await {
            Ok(ceremony) => ceremony,
            Err(error) => return Err(failed(&hub, id, error).await),
        };
        match printer.is_json() {
            true => printer.json(&ceremony),
            false => printer.table(&rows(&ceremony)),
        }
        Ok(())
    })
}

fn rows(ceremony: &Value) -> Vec<[String; 2]> {
    let mut rows = vec![
        ["name".to_owned(), figures::text(&ceremony["name"])],
        ["when".to_owned(), when(ceremony)],
        ["runs".to_owned(), what(ceremony)],
    ];
    rows.retain(|[_, value]| value != "-");
    for member in PLAIN.iter().filter(|member| ceremony[**member].is_string()) {
        rows.push([(*member).to_owned(), figures::text(&ceremony[*member])]);
    }
    if !ceremony["notify"].is_null() {
        rows.push(["notify".to_owned(), sanitize::line(&ceremony["notify"].to_string())]);
    }
    rows.push(["enabled".to_owned(), if ceremony["enabled"] == false { "no" } else { "yes" }.to_owned()]);
    let next: Vec<String> = ceremony["next"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default()
        .iter()
        .map(|run| match run["dst"].as_str() {
            Some(change) => format!("{} ({change} hour)", figures::text(&run["local"])),
            None => figures::text(&run["local"]),
        })
        .collect();
    if !next.is_empty() {
        rows.push(["next".to_owned(), next.join(", ")]);
    }
    rows.push(["last".to_owned(), last(ceremony)]);
    if ceremony["last"]["taskId"].is_string() {
        rows.push(["last task".to_owned(), figures::text(&ceremony["last"]["taskId"])]);
    }
    rows.push(["source".to_owned(), source(ceremony)]);
    if let Some(content) = ceremony["content"].as_str() {
        rows.push(["content".to_owned(), sanitize::line(content)]);
    }
    rows
}

fn source(ceremony: &Value) -> String {
    let source = figures::text(&ceremony["source"]);
    let owner = ceremony["createdByName"].as_str().or(ceremony["createdBy"].as_str());
    match (ceremony["version"].as_u64(), owner) {
        (Some(version), Some(owner)) => format!("{source}, version {version} of {}", sanitize::line(owner)),
        _ => source,
    }
}
