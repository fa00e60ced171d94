//! `switchboard ceremonies run`: runs a ceremony now, and leaves its schedule as it is.

use std::process::ExitCode;

use http::Method;
use serde_json::json;
use switchboard_host::printer::Printer;

use super::{NamedCeremony, failed};
use crate::cli::HubFlags;
use crate::commands::calling::hub_client::HubClient;
use crate::commands::calling::{figures, run as run_async, sanitize};

pub(crate) fn run(flags: &HubFlags, options: &NamedCeremony, printer: Printer) -> Result<(), ExitCode> {
    let NamedCeremony { id } = options;
    run_async(printer, async {
        let hub = HubClient::open(flags).await?;
        let began = match hub.call(Method::POST, hub.url(&["api", "ceremonies", id, "run"]), Some(&json!({}))).await {
            Ok(began) => began,
            Err(error) => return Err(failed(&hub, id, error).await),
        };
        match (printer.is_json(), began["taskId"].is_string()) {
            (true, _) => printer.json(&began),
            (false, true) => printer.line(format!("task {} has begun", figures::text(&began["taskId"]))),
            (false, false) => printer.line(format!("{} is published", sanitize::line(id))),
        }
        Ok(())
    })
}
