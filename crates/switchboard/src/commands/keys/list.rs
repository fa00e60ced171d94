//! `switchboard keys list`: every key there is or was, without its secret.

use std::process::ExitCode;

use serde_json::json;
use switchboard_host::control::Request;
use switchboard_host::keys::KeyView;
use switchboard_host::printer::Printer;

use crate::cli::DataFlags;
use crate::commands::{loaded_data, refused, short};
use crate::control_client::{ControlClientError, request};

pub(crate) fn run(flags: &DataFlags, printer: Printer) -> Result<(), ExitCode> {
    let workspace = loaded_data(flags, printer)?;
    let keys = match short(printer, request(&workspace, Request::ListKeys))? {
        // Where there is no data there are no keys.
        Err(ControlClientError::NoData(_)) => Vec::new(),
        listed => listed.map_err(refused(flags, printer))?.0,
    };
    print(keys, flags, printer);
    Ok(())
}

fn print(keys: Vec<KeyView>, flags: &DataFlags, printer: Printer) {
    if printer.is_json() {
        printer.json(&json!({ "keys": keys }));
        return;
    }
    if keys.is_empty() {
        printer.line(format!("there are no keys; switchboard keys create{} makes one", flags.again()));
        return;
    }
    let heading = ["ID", "NAME", "KEY", "STATE", "AGENTS", "ROLE", "CREATED", "EXPIRES"];
    let rows = keys.into_iter().map(|key| {
        let scopes = key.scopes.as_ref();
        [
            key.id,
            if key.name.is_empty() { "-".to_owned() } else { key.name },
            format!("{}…", key.prefix),
            key.state,
            scopes.map_or_else(|| "unreadable".to_owned(), |scopes| scopes.agents.shown()),
            scopes.map_or_else(|| "-".to_owned(), |scopes| scopes.role.to_string()),
            key.created_at.to_string(),
            key.expires_at.map_or_else(|| "never".to_owned(), |at| at.to_string()),
        ]
    });
    printer.titled_table(heading, rows);
}
