//! `switchboard routes list`: all routes, and how they do.

use std::process::ExitCode;

use serde_json::{Value, json};
use switchboard_host::printer::Printer;

use super::{all, state, then, when};
use crate::cli::HubFlags;
use crate::commands::calling::hub_client::HubClient;
use crate::commands::calling::{figures, run as run_async};

pub(crate) fn run(flags: &HubFlags, printer: Printer) -> Result<(), ExitCode> {
    run_async(printer, async {
        let hub = HubClient::open(flags).await?;
        let routes = all(&hub).await.map_err(|error| error.failure(&hub))?;
        if printer.is_json() {
            printer.json(&json!({ "routes": routes }));
            return Ok(());
        }
        if routes.is_empty() {
            printer.line("there is no route");
            printer.note(&format!("write one into routes.d, or {}", hub.command("routes create", "FILE")));
            return Ok(());
        }
        printer.titled_table(["ROUTE", "WHEN", "THEN", "STATE", "OWED", "SOURCE"], routes.iter().map(row));
        Ok(())
    })
}

fn row(route: &Value) -> [String; 6] {
    [
        figures::text(&route["name"]),
        when(route),
        then(route),
        state(route).to_owned(),
        figures::count(&route["owed"]),
        figures::text(&route["source"]),
    ]
}
