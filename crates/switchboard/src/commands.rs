//! The commands, one file each. A command gets its flags and a printer. If it fails, it
//! prints why and returns the exit code.

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
use crate::control_client::{self, ControlClientError};
use switchboard_fleet::config::FleetConfig;

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
fn short<T>(printer: Printer, work: impl Future<Output = T>) -> Result<T, ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| no_threads(&error, printer))?;
    let result = runtime.block_on(work);
    // A blocking read of standard input may never return.
    runtime.shutdown_background();
    Ok(result)
}

fn no_threads(error: &std::io::Error, printer: Printer) -> ExitCode {
    printer.failure(&format!("the system gave no threads to work with: {error}"), "")
}

/// Sends one request to the control socket and prints its reply: as JSON if that is the output form, else with `print`.
/// `without_server` is the next step to suggest if only a running server can handle the request.
fn control_request<T: Serialize + DeserializeOwned>(
    flags: &DataFlags,
    request: impl Into<Request>,
    without_server: Option<String>,
    printer: Printer,
    print: impl FnOnce(T),
) -> Result<(), ExitCode> {
    let workspace = loaded_data(flags, printer)?;
    let sent = short(printer, control_client::request::<T>(&workspace, request.into()))?;
    let (reply, _) = match (sent, without_server) {
        (Err(ControlClientError::NoServer(refusal)), Some(next)) => {
            return Err(printer.failure(&refusal.problem, &next));
        }
        (sent, _) => sent.map_err(refused(flags, printer))?,
    };
    if printer.is_json() {
        printer.json(&reply)
    } else {
        print(reply)
    }
    Ok(())
}

/// Prints why a request failed.
fn refused(flags: &DataFlags, printer: Printer) -> impl FnOnce(ControlClientError) -> ExitCode {
    move |error| printer.failure(&flags.in_commands(&error.to_string()), &flags.in_commands(&next_step(&error)))
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
