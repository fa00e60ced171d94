//! `switchboard ceremonies delete`: deletes a registered ceremony. What it has begun goes on.

use std::process::ExitCode;

use http::Method;
use serde_json::json;
use switchboard_host::printer::Printer;

use super::{NamedCeremony, failed};
use crate::cli::HubFlags;
use crate::commands::calling::hub_client::HubClient;
use crate::commands::calling::{run as run_async, sanitize};

pub(crate) fn run(flags: &HubFlags, options: &NamedCeremony, printer: Printer) -> Result<(), ExitCode> {
    let NamedCeremony { id } = options;
    run_async(printer, async {
        let hub = HubClient::open(flags).await?;
        match hub.call(Method::POST, hub.url(&["api", "ceremonies", id, "delete"]), Some(&json!({}))).await {
            Ok(_) if printer.is_json() => printer.json(&json!({ "deleted": id })),
            Ok(_) => printer.line(format!("deleted {}", sanitize::line(id))),
            Err(error) => return Err(failed(&hub, id, error).await),
        }
        Ok(())
    })
}
