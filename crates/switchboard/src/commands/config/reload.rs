//! `switchboard config reload`: has the running server read its configuration again and apply what it can.

use std::process::ExitCode;

use switchboard_host::control::Request;
use switchboard_host::printer::Printer;
use switchboard_host::serve::ReloadReport;

use crate::cli::DataFlags;
use crate::commands::control_request;

/// Asks the server. Exits 1 if there is none or if its configuration has problems.
pub(crate) fn run(flags: &DataFlags, printer: Printer) -> Result<(), ExitCode> {
    let next = "a server reads its configuration when it starts".to_owned();
    control_request(flags, Request::Reload, Some(next), printer, |reloaded| print(&reloaded, printer))
}

fn print(reloaded: &ReloadReport, printer: Printer) {
    for warning in &reloaded.warnings {
        printer.warning(warning);
    }
    printer.line(match reloaded.applied.as_slice() {
        [] => "read again; nothing has changed that can be applied while the server runs".to_owned(),
        keys => format!("in force: {}", keys.join(", ")),
    });
    if !reloaded.needs_restart.is_empty() {
        printer.line(format!("changed, and in force after a restart: {}", reloaded.needs_restart.join(", ")));
    }
}
