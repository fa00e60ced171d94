//! The commands, one file each. A command gets its flags and a printer and returns the exit code.

pub(crate) mod calling;
pub(crate) mod config;
pub(crate) mod db;
pub(crate) mod doctor;
pub(crate) mod keys;
pub(crate) mod live_tasks;
pub(crate) mod serve;
pub(crate) mod status;
mod status_line;
pub(crate) mod version;
pub(crate) mod webhooks;

use status_line::StatusLine;

use std::future::Future;
use std::process::ExitCode;

use serde::Serialize;
use serde::de::DeserializeOwned;
use switchboard_host::config::{Problems, Workspace};
use switchboard_host::control::Request;
use switchboard_host::printer::Printer;

use crate::cli::DataFlags;
use crate::config::FleetConfig;
use crate::control_client::{self, ControlClientError};

/// The workspace and its agents, or the exit code after its problems are printed.
fn loaded(fleet: Result<FleetConfig, Problems>, printer: Printer) -> Result<FleetConfig, ExitCode> {
    fleet.map_err(|problems| {
        config::check::report(&problems, printer);
        ExitCode::FAILURE
    })
}

/// The workspace for a command that needs its data. Prints a warning for each configuration file that is not read.
fn loaded_data(flags: &DataFlags, printer: Printer) -> Result<Workspace, ExitCode> {
    Ok(loaded_fleet(flags, printer)?.workspace)
}

/// The same for a command that needs the agents as well.
fn loaded_fleet(flags: &DataFlags, printer: Printer) -> Result<FleetConfig, ExitCode> {
    let fleet = loaded(flags.load(), printer)?;
    fleet.workspace.unread.iter().for_each(|unread| printer.warning(unread));
    Ok(fleet)
}

/// Runs a command's async part; one thread is enough for the few requests of a command.
fn short(printer: Printer, work: impl Future<Output = ExitCode>) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return printer.failure(&format!("the system gave no threads to work with: {error}"), ""),
    };
    let code = runtime.block_on(work);
    // A blocking read of standard input may never return.
    runtime.shutdown_background();
    code
}

/// Sends one request to the control socket and prints its reply: as JSON if that is the output form, else with `print`.
/// `without_server` is the next step to suggest if only a running server can handle the request.
fn control_request<T: Serialize + DeserializeOwned>(
    flags: &DataFlags,
    request: impl Into<Request>,
    without_server: Option<String>,
    printer: Printer,
    print: impl FnOnce(T),
) -> ExitCode {
    let workspace = match loaded_data(flags, printer) {
        Ok(workspace) => workspace,
        Err(code) => return code,
    };
    short(printer, async {
        match (control_client::request::<T>(&workspace, request.into()).await, without_server) {
            (Ok((reply, _)), _) if printer.is_json() => printer.json(&reply),
            (Ok((reply, _)), _) => print(reply),
            (Err(ControlClientError::NoServer(refusal)), Some(next)) => {
                return printer.failure(&refusal.problem, &next);
            }
            (Err(error), _) => return refused(&error, printer),
        }
        ExitCode::SUCCESS
    })
}

fn refused(error: &ControlClientError, printer: Printer) -> ExitCode {
    printer.failure(&error.to_string(), &next_step(error))
}

/// What the operator can do about it.
fn next_step(error: &ControlClientError) -> String {
    match error {
        ControlClientError::NoData(_) => {
            "name the workspace of the server with --workspace, or its data with --data-dir".to_owned()
        }
        ControlClientError::Silent { .. } => "try again, and stop that process if it stays silent".to_owned(),
        ControlClientError::Open(error) => error.next_step(),
        ControlClientError::Directory { .. } => "run it as the user that runs the server".to_owned(),
        ControlClientError::Refused(refusal) | ControlClientError::NoServer(refusal) => refusal.next.clone(),
        ControlClientError::Answer(_) => String::new(),
    }
}
