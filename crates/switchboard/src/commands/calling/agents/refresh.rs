//! `switchboard agents refresh`: has the server fetch an agent's card now.

use std::process::ExitCode;

use http::Method;
use serde_json::Value;
use switchboard_host::printer::Printer;

use super::{NamedAgent, failed, show};
use crate::cli::HubFlags;
use crate::commands::calling::hub_client::{HubClient, HubError};
use crate::commands::calling::run as run_async;

pub(crate) fn run(flags: &HubFlags, NamedAgent { name }: &NamedAgent, printer: Printer) -> Result<(), ExitCode> {
    run_async(printer, async {
        let hub = HubClient::open(flags).await?;
        match refresh(&hub, name).await {
            Ok(agent) if printer.is_json() => printer.json(&agent),
            Ok(agent) => show::print(&hub, &agent, printer),
            Err(error) => return Err(failed(&hub, name, error).await),
        }
        Ok(())
    })
}

/// The agent after a look at its card.
pub(super) async fn refresh(hub: &HubClient, name: &str) -> Result<Value, HubError> {
    hub.call(Method::POST, hub.url(&["api", "agents", &format!("{name}:refresh")]), None).await
}
