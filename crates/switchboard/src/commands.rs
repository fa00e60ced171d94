//! The commands, one file each. A command gets its flags and a printer and returns the exit code.

pub mod calling;
pub mod config;
pub mod db;
pub mod doctor;
pub mod keys;
pub mod live_tasks;
pub mod serve;
pub mod status;
pub mod version;
pub mod webhooks;

use std::future::Future;
use std::process::ExitCode;

use switchboard_host::config::{Problems, Workspace};
use switchboard_host::printer::Printer;

use crate::cli::DataFlags;
use crate::config::FleetConfig;
use crate::control_client::DoorError;

/// The workspace and its agents, or the exit code once its problems are told.
fn loaded(fleet: Result<FleetConfig, Problems>, printer: Printer) -> Result<FleetConfig, ExitCode> {
    fleet.map_err(|problems| {
        config::check::report(&problems, printer);
        ExitCode::FAILURE
    })
}

/// The workspace for a command that needs its data; what looks like a setting of it and is none is told.
fn loaded_data(flags: &DataFlags, printer: Printer) -> Result<Workspace, ExitCode> {
    Ok(loaded_fleet(flags, printer)?.workspace)
}

/// The same for a command that needs the agents as well.
fn loaded_fleet(flags: &DataFlags, printer: Printer) -> Result<FleetConfig, ExitCode> {
    let fleet = loaded(flags.load(), printer)?;
    fleet.workspace.unread.iter().for_each(|unread| printer.warning(unread));
    Ok(fleet)
}

/// Runs a short command's async part; a single thread is plenty for one question and its answer.
fn short(printer: Printer, work: impl Future<Output = ExitCode>) -> ExitCode {
    match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime.block_on(work),
        Err(error) => printer.failure(&format!("the system gave no threads to work with: {error}"), ""),
    }
}

/// Says why a command could not do its work.
fn refused(error: &DoorError, printer: Printer) -> ExitCode {
    printer.failure(&error.to_string(), &next_step(error))
}

/// What to do about it.
fn next_step(error: &DoorError) -> String {
    match error {
        DoorError::NoData(_) => {
            "name the workspace of the server with --workspace, or its data with --data-dir".to_owned()
        }
        DoorError::Silent { .. } => "try again, and stop that process if it stays silent".to_owned(),
        DoorError::Open(error) => error.next_step(),
        DoorError::Directory { .. } => "run it as the user that runs the server".to_owned(),
        DoorError::Refused(refusal) => refusal.next.clone(),
        DoorError::Answer(_) => String::new(),
    }
}
