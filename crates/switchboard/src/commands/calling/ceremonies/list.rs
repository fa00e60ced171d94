//! `switchboard ceremonies list`: all ceremonies, when they are due and what was last.

use std::process::ExitCode;

use serde_json::{Value, json};
use switchboard_host::printer::Printer;

use super::{all, last, next, what, when};
use crate::cli::HubFlags;
use crate::commands::calling::hub_client::HubClient;
use crate::commands::calling::{figures, run as run_async};

pub(crate) fn run(flags: &HubFlags, printer: Printer) -> Result<(), ExitCode> {
    run_async(printer, async {
        let hub = HubClient::open(flags).await?;
        let ceremonies = all(&hub).await.map_err(|error| error.failure(&hub))?;
        if printer.is_json() {
            printer.json(&json!({ "ceremonies": ceremonies }));
            return Ok(());
        }
        if ceremonies.is_empty() {
            printer.line("there is no ceremony");
            printer.note(&format!(
                "write one into the folder ceremonies, or {}",
                hub.command("ceremonies create", "FILE")
            ));
            return Ok(());
        }
        printer.titled_table(["CEREMONY", "WHEN", "RUNS", "NEXT", "LAST", "SOURCE"], ceremonies.iter().map(row));
        Ok(())
    })
}

fn row(ceremony: &Value) -> [String; 6] {
    [
        figures::text(&ceremony["id"]),
        when(ceremony),
        what(ceremony),
        next(ceremony),
        last(ceremony),
        figures::text(&ceremony["source"]),
    ]
}
