//! `switchboard config reload`: has the running server read its configuration again and apply what it can.

use std::process::ExitCode;

use switchboard_host::control::Request;
use switchboard_host::printer::Printer;
use switchboard_host::serve::ReloadReport;

use crate::cli::DataFlags;
use crate::commands::{loaded_data, refused, short};
use crate::control_client::{ControlClient, ControlClientError};

/// Asks the server. Exits 1 if there is none or if its configuration has problems.
#[must_use]
pub fn run(flags: &DataFlags, printer: Printer) -> ExitCode {
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
        match client.request::<ReloadReport>(Request::Reload).await {
            Ok(reloaded) => {
                print(&reloaded, printer);
                ExitCode::SUCCESS
            }
            Err(ControlClientError::Refused(refusal)) if !running => {
                printer.failure(&refusal.problem, "a server reads its configuration when it starts")
            }
            Err(error) => refused(&error, printer),
        }
    })
}

fn print(reloaded: &ReloadReport, printer: Printer) {
    if printer.is_json() {
        printer.json(reloaded);
        return;
    }
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
