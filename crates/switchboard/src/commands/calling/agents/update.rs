//! `switchboard agents update`: replaces the registration of an agent.

use std::process::ExitCode;

use http::Method;
use serde_json::Value;
use switchboard_host::printer::Printer;

use super::{failed, file, show};
use crate::cli::HubFlags;
use crate::commands::calling::hub_client::HubClient;
use crate::commands::calling::{run as run_async, sanitize};

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct UpdateOptions {
    /// Name of the agent, as the list shows it
    name: String,

    /// File with the whole of what shall be registered, as an item of agents.yaml; - reads standard input
    file: String,

    /// Replace this version only; without it the one that is there when the command begins
    #[arg(long, value_name = "NUMBER")]
    if_version: Option<u64>,
}

pub(crate) fn run(flags: &HubFlags, options: &UpdateOptions, printer: Printer) -> Result<(), ExitCode> {
    let UpdateOptions { name, file, if_version } = options;
    run_async(printer, async {
        let mut item = file::item(file)?;
        let hub = HubClient::open(flags).await?;
        let version = match if_version {
            Some(version) => Some(*version),
            None => show::read(&hub, name).await?["version"].as_u64(),
        };
        item.entry("name").or_insert_with(|| name.as_str().into());
        if let Some(version) = version {
            item.insert("version".to_owned(), version.into());
        }
        let url = hub.url(&["api", "agents", name]);
        match hub.call(Method::PUT, url, Some(&Value::Object(item))).await {
            Ok(answer) if printer.is_json() => printer.json(&answer),
            Ok(answer) => {
                printer.line(format!("{} has version {} now", sanitize::line(name), answer["version"]));
                if answer["shadowed"] == true {
                    printer.note("it has no effect yet: a file has an agent of this name, which counts");
                }
            }
            Err(error) => return Err(failed(&hub, name, error).await),
        }
        Ok(())
    })
}
