//! `switchboard routes delete`: removes a registered route and what it owes.

use std::process::ExitCode;

use http::Method;
use serde_json::json;
use switchboard_host::printer::Printer;

use super::{NamedRoute, failed};
use crate::cli::HubFlags;
use crate::commands::calling::hub_client::HubClient;
use crate::commands::calling::{run as run_async, sanitize};

pub(crate) fn run(flags: &HubFlags, options: &NamedRoute, printer: Printer) -> Result<(), ExitCode> {
    let NamedRoute { name } = options;
    run_async(printer, async {
        let hub = HubClient::open(flags).await?;
        match hub.call(Method::DELETE, hub.url(&["api", "routes", name]), None).await {
            Ok(_) if printer.is_json() => printer.json(&json!({ "deleted": name })),
            Ok(_) => printer.line(format!("deleted {}", sanitize::line(name))),
            Err(error) => return Err(failed(&hub, name, error).await),
        }
        Ok(())
    })
}
