//! `switchboard db check`: looks for damage in the data file and changes nothing. Exits 1 if it finds any.

use std::process::ExitCode;

use serde_json::json;
use switchboard_store::{CheckError, OpenError};

use crate::cli::DataFlags;
use crate::commands::loaded;
use crate::printer::Printer;
use crate::serve::{RESTORE, open_problem};

/// Checks the file.
#[must_use]
pub fn run(flags: &DataFlags, printer: Printer) -> ExitCode {
    let workspace = match loaded(flags.load(), printer) {
        Ok(workspace) => workspace,
        Err(code) => return code,
    };
    let data_dir = workspace.data_dir();
    let found = match switchboard_store::check(&data_dir) {
        Ok(found) => found,
        Err(error) => {
            let next = match error {
                // In the words of every other command.
                CheckError::NewerSchema { found, known } => {
                    let error = open_problem(&data_dir, OpenError::NewerSchema { found, known });
                    return printer.failure(&error.to_string(), &error.next_step());
                }
                CheckError::Missing(_) => "name the workspace with --workspace, or the data with --data-dir",
                CheckError::OlderSchema { .. } => "use the switchboard program that wrote it",
                CheckError::Damaged(_) => RESTORE,
                CheckError::Database(_) => "run it as the user that runs the server, on a disk that can be written",
            };
            return printer.failure(&error.to_string(), next);
        }
    };
    let good = found.problems.is_empty();
    if printer.is_json() {
        printer.json(&json!({
            "ok": good,
            "dataDir": data_dir,
            "tasks": found.tasks,
            "eventRows": found.event_rows,
            "problems": found.problems,
        }));
    } else {
        for problem in &found.problems {
            printer.error(problem, "");
        }
        let checked = format!("{} tasks in {} event rows", found.tasks, found.event_rows);
        if good {
            printer.line(format!("{checked}: all is well"));
        } else {
            let count = found.problems.len();
            let next = "keep a copy of switchboard.db and put a backup in its place, if you have one (switchboard db backup makes them)";
            printer.error(&format!("{checked}: {count} problems"), next);
        }
    }
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
