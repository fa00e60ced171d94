//! `switchboard routes show`: one route, what it owes and what went wrong last.

use std::process::ExitCode;

use http::Method;
use serde_json::Value;
use switchboard_host::printer::Printer;

use super::{NamedRoute, state, then, when};
use crate::cli::HubFlags;
use crate::commands::calling::hub_client::HubClient;
use crate::commands::calling::{Failure, figures, run as run_async, sanitize};

pub(crate) fn run(flags: &HubFlags, options: &NamedRoute, printer: Printer) -> Result<(), ExitCode> {
    run_async(printer, async {
        let hub = HubClient::open(flags).await?;
        let route = read(&hub, &options.name).await?;
        if printer.is_json() {
            printer.json(&route);
            return Ok(());
        }
        let owed = match route["leftOut"].as_u64() {
            Some(count) => format!("{}, and {count} left out while it is paused", route["owed"]),
            None => route["owed"].to_string(),
        };
        let mut rows = vec![
            ["when".to_owned(), when(&route)],
            ["then".to_owned(), then(&route)],
            ["state".to_owned(), state(&route).to_owned()],
            ["owed".to_owned(), owed],
            ["source".to_owned(), source(&route)],
        ];
        if route["deliveredAt"].is_string() {
            rows.push(["delivered".to_owned(), figures::text(&route["deliveredAt"])]);
        }
        if let Some(problem) = route["lastError"]["problem"].as_str() {
            let at = figures::text(&route["lastError"]["at"]);
            rows.push(["last error".to_owned(), format!("{at}: {}", sanitize::line(problem))]);
        }
        match &route["content"] {
            Value::Null => {}
            Value::String(text) => rows.push(["content".to_owned(), sanitize::line(text)]),
            other => rows.push(["content".to_owned(), sanitize::line(&other.to_string())]),
        }
        printer.table(&rows);
        Ok(())
    })
}

/// The route of a name.
async fn read(hub: &HubClient, name: &str) -> Result<Value, Failure> {
    let mut url = hub.url(&["api", "routes"]);
    url.query_pairs_mut().append_pair("name", name);
    let mut page = hub.call(Method::GET, url, None).await.map_err(|error| error.failure(hub))?;
    match page["items"].get_mut(0).map(Value::take) {
        Some(route) => Ok(route),
        None => {
            let problem = format!("there is no route {}", sanitize::line(name));
            let names = super::all(hub).await.unwrap_or_default();
            let known = names.iter().filter_map(|route| route["name"].as_str());
            let next = match switchboard_host::config::suggestion::nearest(name, known) {
                Some(meant) => format!("did you mean {}?", sanitize::line(meant)),
                None => hub.command("routes list", ""),
            };
            Err(Failure::by_server("SWITCHBOARD_ERR_NOT_FOUND", problem, next))
        }
    }
}

fn source(route: &Value) -> String {
    let source = figures::text(&route["source"]);
    match (route["version"].as_u64(), route["ownerName"].as_str().or(route["owner"].as_str())) {
        (Some(version), Some(owner)) => format!("{source}, version {version} of {}", sanitize::line(owner)),
        _ => source,
    }
}
