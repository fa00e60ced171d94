//! `switchboard agents remove`: removes a registered agent.

use std::process::ExitCode;

use http::Method;
use serde_json::json;
use switchboard_host::printer::Printer;

use super::failed;
use crate::cli::HubFlags;
use crate::commands::calling::hub_client::HubClient;
use crate::commands::calling::{run as run_async, sanitize};

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct RemoveOptions {
    /// Name of the agent, as the list shows it
    name: String,

    /// Remove it although it has tasks that have not ended: these go on, and it gets no new ones
    #[arg(long)]
    force: bool,
}

pub(crate) fn run(flags: &HubFlags, options: &RemoveOptions, printer: Printer) -> Result<(), ExitCode> {
    let RemoveOptions { name, force } = options;
    run_async(printer, async {
        let hub = HubClient::open(flags).await?;
        let mut url = hub.url(&["api", "agents", name]);
        if *force {
            url.query_pairs_mut().append_pair("force", "true");
        }
        match hub.call(Method::DELETE, url, None).await {
            Ok(_) if printer.is_json() => printer.json(&json!({ "removed": name })),
            Ok(_) => printer.line(format!("removed {}", sanitize::line(name))),
            Err(error) => return Err(failed(&hub, name, error).await),
        }
        Ok(())
    })
}
