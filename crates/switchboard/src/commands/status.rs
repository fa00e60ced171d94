//! `switchboard status`: whether a server runs on a data directory, and which.

use std::process::ExitCode;

use switchboard_host::control::{Request, Status};
use switchboard_host::printer::Printer;

use crate::cli::DataFlags;
use crate::commands::{loaded_data, refused, short};
use crate::control_client::{ControlClient, ControlClientError};

/// Asks the server. Exits 1 if there is none.
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
        match client.request::<Status>(Request::Status).await {
            Ok(status) => {
                print(&status, printer);
                ExitCode::SUCCESS
            }
            Err(ControlClientError::Refused(refusal)) if !running => {
                printer.failure(&refusal.problem, &format!("switchboard serve{} starts one", flags.again()))
            }
            Err(error) => refused(&error, printer),
        }
    })
}

fn print(status: &Status, printer: Printer) {
    if printer.is_json() {
        printer.json(status);
        return;
    }
    let callers = if status.keys_required { "need a key" } else { "anyone on this machine" };
    let scheme = if status.tls { "https" } else { "http" };
    printer.table(&[
        ["address".to_owned(), format!("{scheme}://{}", status.address)],
        ["process".to_owned(), status.pid.to_string()],
        ["version".to_owned(), status.version.clone()],
        ["agents".to_owned(), status.agents.join(", ")],
        ["callers".to_owned(), callers.to_owned()],
    ]);
}
