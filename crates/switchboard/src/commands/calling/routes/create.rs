//! `switchboard routes create`: registers a route with the running server.

use std::process::ExitCode;

use http::Method;
use serde_json::Value;
use switchboard_host::printer::Printer;

use super::failed;
use crate::cli::HubFlags;
use crate::commands::calling::agents::read_file;
use crate::commands::calling::hub_client::HubClient;
use crate::commands::calling::{Failure, figures, run as run_async, sanitize};

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct CreateOptions {
    /// File with the route, as one of routes.d; - reads standard input
    file: String,

    /// Take the place of the registered route of this name
    #[arg(long)]
    replace: bool,
}

pub(crate) fn run(flags: &HubFlags, options: &CreateOptions, printer: Printer) -> Result<(), ExitCode> {
    run_async(printer, async {
        let definition = definition(&options.file)?;
        let name = definition["name"].as_str().unwrap_or_default().to_owned();
        let hub = HubClient::open(flags).await?;
        let mut created = None;
        if options.replace && !name.is_empty() {
            match hub.call(Method::PUT, hub.url(&["api", "routes", &name]), Some(&definition)).await {
                Ok(route) => created = Some(route),
                Err(error) if error.is_code("NOT_FOUND") => {}
                Err(error) => return Err(failed(&hub, &name, error).await),
            }
        }
        let created = match created {
            Some(route) => route,
            None => match hub.call(Method::POST, hub.url(&["api", "routes"]), Some(&definition)).await {
                Ok(route) => route,
                Err(error) => return Err(failed(&hub, &name, error).await),
            },
        };
        match printer.is_json() {
            true => printer.json(&created),
            false => printer.line(format!(
                "route {} has version {} now",
                figures::text(&created["name"]),
                created["version"]
            )),
        }
        Ok(())
    })
}

/// The definition in a file, which may go without a name as in `routes.d`.
fn definition(path: &str) -> Result<Value, Failure> {
    let shown = sanitize::line(path);
    let text = read_file(path).map_err(|error| {
        Failure::usage(format!("{shown} cannot be read: {error}"), "name a file with a route, such as one of routes.d")
    })?;
    let mut definition: Value = serde_saphyr::from_str(&text).map_err(|error| {
        Failure::usage(format!("{shown} is not YAML: {}", sanitize::line(&error.to_string())), "correct the file")
    })?;
    let stem = std::path::Path::new(path).file_stem().and_then(|stem| stem.to_str()).filter(|_| path != "-");
    match (&mut definition, stem) {
        (Value::Object(members), Some(stem)) => {
            members.entry("name").or_insert_with(|| stem.into());
            Ok(definition)
        }
        (Value::Object(_), None) => Ok(definition),
        _ => Err(Failure::usage(format!("{shown} has no route in it"), "write at least when and then")),
    }
}
