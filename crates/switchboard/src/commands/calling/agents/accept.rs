//! `switchboard agents accept`: accepts the changed card of an agent whose changes are held.

use std::process::ExitCode;

use http::Method;
use serde_json::json;
use switchboard_host::printer::Printer;

use super::{failed, show};
use crate::cli::HubFlags;
use crate::commands::calling::hub_client::HubClient;
use crate::commands::calling::{Failure, run as run_async, sanitize};

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct AcceptOptions {
    /// Name of the agent, as the list shows it
    name: String,

    /// Accept the card with this etag only, as agents show has it; without it the one that is held now
    #[arg(long, value_name = "ETAG")]
    etag: Option<String>,
}

pub(crate) fn run(flags: &HubFlags, options: &AcceptOptions, printer: Printer) -> Result<(), ExitCode> {
    let AcceptOptions { name, etag } = options;
    run_async(printer, async {
        let hub = HubClient::open(flags).await?;
        let etag = match etag {
            Some(etag) => etag.clone(),
            None => {
                let agent = show::read(&hub, name).await?;
                let held = agent["held"]["etag"].as_str().map(str::to_owned);
                held.ok_or_else(|| {
                    let message = format!("no card of agent {} is held", sanitize::line(name));
                    let next = format!("{} looks whether it has changed", hub.command("agents refresh", name));
                    Failure::by_server("SWITCHBOARD_ERR_NOT_FOUND", message, next)
                })?
            }
        };
        let url = hub.url(&["api", "agents", &format!("{name}:accept")]);
        match hub.call(Method::POST, url, Some(&json!({ "etag": etag }))).await {
            Ok(agent) if printer.is_json() => printer.json(&agent),
            Ok(agent) => show::print(&hub, &agent, printer),
            Err(error) => return Err(failed(&hub, name, error).await),
        }
        Ok(())
    })
}
