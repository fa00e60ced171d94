//! `switchboard keys revoke`: takes a key out of use for good, also under open streams.

use std::process::ExitCode;

use serde_json::json;
use switchboard_host::control::Request;
use switchboard_host::keys::KeyView;
use switchboard_host::printer::Printer;

use crate::cli::DataFlags;
use crate::commands::{loaded_data, refused, short};
use crate::control_client::ControlClient;

/// Revokes a key.
#[must_use]
pub fn run(flags: &DataFlags, id: &str, printer: Printer) -> ExitCode {
    let workspace = match loaded_data(flags, printer) {
        Ok(workspace) => workspace,
        Err(code) => return code,
    };
    let data_dir = workspace.data_dir();
    short(printer, async {
        let client = match ControlClient::open(&data_dir, false).await {
            Ok(client) => client,
            Err(error) => return refused(&error, printer),
        };
        let running = client.is_server();
        match client.request::<KeyView>(Request::RevokeKey { id: id.to_owned() }).await {
            Ok(key) if printer.is_json() => {
                printer.json(&json!({ "key": key, "inForce": running }));
                ExitCode::SUCCESS
            }
            Ok(key) => {
                printer.line(format!("{} is revoked", key.id));
                ExitCode::SUCCESS
            }
            Err(error) => refused(&error, printer),
        }
    })
}
