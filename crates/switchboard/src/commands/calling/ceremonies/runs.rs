//! `switchboard ceremonies runs`: the history of a ceremony, newest first.

use std::process::ExitCode;

use http::Method;
use serde_json::{Value, json};
use switchboard_host::printer::Printer;

use super::{NamedCeremony, failed};
use crate::cli::HubFlags;
use crate::commands::calling::hub_client::HubClient;
use crate::commands::calling::{figures, run as run_async};

pub(crate) fn run(flags: &HubFlags, options: &NamedCeremony, printer: Printer) -> Result<(), ExitCode> {
    let NamedCeremony { id } = options;
    run_async(printer, async {
        let hub = HubClient::open(flags).await?;
        let mut url = hub.url(&["api", "ceremonies", id, "runs"]);
        url.query_pairs_mut().append_pair("pageSize", "100");
        let mut page = match hub.call(Method::GET, url, None).await {
            Ok(page) => page,
            Err(error) => return Err(failed(&hub, id, error).await),
        };
        let Value::Array(runs) = page["items"].take() else { return Ok(()) };
        if printer.is_json() {
            printer.json(&json!({ "runs": runs }));
            return Ok(());
        }
        if runs.is_empty() {
            printer.line("there is no run");
            return Ok(());
        }
        printer.titled_table(["TIME", "STATE", "AGENT", "TASK", "FIRST WORDS"], runs.iter().map(row));
        if page["next"].is_string() {
            printer.note(&format!("older ones: {}", hub.command("task list", "--via cron")));
        }
        Ok(())
    })
}

fn row(run: &Value) -> [String; 5] {
    ["receivedAt", "state", "agent", "taskId", "title"].map(|member| figures::text(&run[member]))
}
