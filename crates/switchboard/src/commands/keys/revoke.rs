//! `switchboard keys revoke`: takes a key out of use for good, also under open streams.

use std::process::ExitCode;

use serde_json::json;
use switchboard_host::control::Request;
use switchboard_host::keys::KeyView;
use switchboard_host::printer::Printer;

use crate::cli::DataFlags;
use crate::commands::{loaded_data, refused, short};
use crate::control_client::request;

pub(crate) fn run(flags: &DataFlags, id: String, printer: Printer) -> Result<(), ExitCode> {
    let workspace = loaded_data(flags, printer)?;
    let sent = short(printer, request::<KeyView>(&workspace, Request::RevokeKey { id }))?;
    let (key, is_server) = sent.map_err(refused(flags, printer))?;
    match printer.is_json() {
        true => printer.json(&json!({ "key": key, "inForce": is_server })),
        false => printer.line(format!("{} is revoked", key.id)),
    }
    Ok(())
}
