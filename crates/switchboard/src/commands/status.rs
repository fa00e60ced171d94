//! `switchboard status`: whether a server runs on a data directory, and which.

use std::process::ExitCode;

use switchboard_host::control::{Request, Status};
use switchboard_host::printer::Printer;

use crate::cli::DataFlags;
use crate::commands::control_request;

/// Asks the server. Exits 1 if there is none.
pub(crate) fn run(flags: &DataFlags, printer: Printer) -> Result<(), ExitCode> {
    let next = format!("switchboard serve{} starts one", flags.again());
    control_request(flags, Request::Status, Some(next), printer, |status| print(&status, printer))
}

fn print(status: &Status, printer: Printer) {
    let callers = if status.keys_required { "need a key" } else { "anyone on this machine" };
    let scheme = if status.tls { "https" } else { "http" };
    printer.fields([
        ("address", format!("{scheme}://{}", status.address)),
        ("process", status.pid.to_string()),
        ("version", status.version.clone()),
        ("agents", status.agents.join(", ")),
        ("callers", callers.to_owned()),
    ]);
}
