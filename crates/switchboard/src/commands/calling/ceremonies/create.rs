//! `switchboard ceremonies create`: registers a ceremony with the running server.

use std::process::ExitCode;

use http::Method;
use serde_json::Value;
use switchboard_host::printer::Printer;

use super::{due, failed};
use crate::cli::HubFlags;
use crate::commands::calling::agents::read_file;
use crate::commands::calling::hub_client::HubClient;
use crate::commands::calling::{Failure, figures, run as run_async, sanitize};

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct CreateOptions {
    /// File with the ceremony, as one of the folder ceremonies; - reads standard input
    file: String,
}

pub(crate) fn run(flags: &HubFlags, options: &CreateOptions, printer: Printer) -> Result<(), ExitCode> {
    run_async(printer, async {
        let definition = definition(&options.file)?;
        let id = definition["id"].as_str().unwrap_or_default().to_owned();
        let hub = HubClient::open(flags).await?;
        let created = match hub.call(Method::POST, hub.url(&["api", "ceremonies", "create"]), Some(&definition)).await {
            Ok(created) => created,
            Err(error) => return Err(failed(&hub, &id, error).await),
        };
        match printer.is_json() {
            true => printer.json(&created),
            false => printer.line(format!("ceremony {} is {}", figures::text(&created["id"]), due(&created))),
        }
        Ok(())
    })
}

/// The definition in a file, which may go without an id as in the folder.
fn definition(path: &str) -> Result<Value, Failure> {
    let shown = sanitize::line(path);
    let text = read_file(path)
        .map_err(|error| Failure::usage(format!("{shown} cannot be read: {error}"), "name a file with a ceremony"))?;
    let mut definition: Value = serde_saphyr::from_str(&text).map_err(|error| {
        Failure::usage(format!("{shown} is not YAML: {}", sanitize::line(&error.to_string())), "correct the file")
    })?;
    let stem = std::path::Path::new(path).file_stem().and_then(|stem| stem.to_str()).filter(|_| path != "-");
    match (&mut definition, stem) {
        (Value::Object(members), Some(stem)) => {
            members.entry("id").or_insert_with(|| stem.into());
            Ok(definition)
        }
        (Value::Object(_), None) => Ok(definition),
        _ => Err(Failure::usage(format!("{shown} has no ceremony in it"), "write at least schedule and skill")),
    }
}
