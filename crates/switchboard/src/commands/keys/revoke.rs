//! `switchboard keys revoke`: takes a key out of use for good, also under open streams.

use std::process::ExitCode;

use serde_json::json;
use switchboard_host::control::Request;
use switchboard_host::keys::KeyView;
use switchboard_host::printer::Printer;

use crate::cli::DataFlags;
use crate::commands::{loaded_data, refused, short};
use crate::control_client::request;

pub(crate) fn run(flags: &DataFlags, id: String, printer: Printer) -> ExitCode {
    let workspace = match loaded_data(flags, printer) {
        Ok(workspace) => workspace,
        Err(code) => return code,
    };
    short(printer, async {
        match request::<KeyView>(&workspace, Request::RevokeKey { id }).await {
            Ok((key, is_server)) if printer.is_json() => printer.json(&json!({ "key": key, "inForce": is_server })),
            Ok((key, _)) => printer.line(format!("{} is revoked", key.id)),
            Err(error) => return refused(&error, printer),
        }
        ExitCode::SUCCESS
    })
}
