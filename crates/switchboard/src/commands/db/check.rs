//! `switchboard db check`: looks for damage in the data file, or in a backup, and changes nothing. Exits 1 if it finds any.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::json;
use switchboard_host::printer::Printer;
use switchboard_host::sanitize::shell_path;
use switchboard_host::serve::{RESTORE, open_problem};
use switchboard_store::{CheckError, IntegrityReport, OpenError, database_path};

use crate::cli::DataFlags;
use crate::commands::loaded_data;

pub(crate) fn run(flags: &DataFlags, backup: Option<&Path>, printer: Printer) -> Result<(), ExitCode> {
    // A backup belongs to no workspace.
    let file: PathBuf = match backup {
        Some(backup) => backup.to_owned(),
        None => database_path(&loaded_data(flags, printer)?.data_dir()),
    };
    let found = switchboard_store::check_file(&file).map_err(|error| {
        let (problem, next) = unchecked(&error, &file, backup.is_some());
        printer.failure(&problem, &flags.in_commands(&next))
    })?;
    print(&found, &file, backup.is_some(), flags, printer);
    if found.problems.is_empty() { Ok(()) } else { Err(ExitCode::FAILURE) }
}

fn print(found: &IntegrityReport, file: &Path, is_backup: bool, flags: &DataFlags, printer: Printer) {
    if printer.is_json() {
        printer.json(&json!({
            "ok": found.problems.is_empty(),
            "file": file,
            "dataDir": (!is_backup).then(|| file.parent()),
            "tasks": found.tasks,
            "eventRows": found.event_rows,
            "problems": found.problems,
        }));
    } else {
        for problem in &found.problems {
            printer.error(problem, "");
        }
        let checked = format!("{} tasks in {} event rows", found.tasks, found.event_rows);
        let next = if is_backup { "restore an earlier backup" } else { RESTORE };
        match found.problems.len() {
            0 => printer.line(format!("{checked}: all is well")),
            count => printer.error(&format!("{checked}: {count} problems"), &flags.in_commands(next)),
        }
    }
}

/// Why the file cannot be checked, and what to do.
fn unchecked(error: &CheckError, file: &Path, is_backup: bool) -> (String, String) {
    let next = match (error, is_backup) {
        (CheckError::Directory(directory), _) => {
            let next = format!(
                "name a file that db backup has written; the data of a server is checked with switchboard db check \
                 --data-dir {}",
                shell_path(directory)
            );
            return (error.to_string(), next);
        }
        // The same message as for every other command.
        (CheckError::NewerSchema(found), false) => {
            let directory = file.parent().unwrap_or(file);
            let error = open_problem(directory, OpenError::NewerSchema(*found));
            return (error.to_string(), error.next_step());
        }
        (CheckError::NewerSchema(_), true) => "use the switchboard program that wrote it, or a later one",
        (CheckError::Missing(_), false) => "name the workspace with --workspace, or the data with --data-dir",
        (CheckError::Missing(_), true) => "name a file that db backup has written",
        (CheckError::OlderSchema(0), _) => "it is no database of Switchboard: name another file",
        (CheckError::OlderSchema(_), false) => "use the switchboard program that wrote it",
        (CheckError::OlderSchema(_), true) => {
            "use the switchboard program that wrote it; db restore brings it to this schema and checks it before it is used"
        }
        (CheckError::Damaged(_), false) => RESTORE,
        (CheckError::Damaged(_), true) => "restore an earlier backup",
        (CheckError::Database(_), _) => "run it as the user that runs the server, on a disk that can be written",
    };
    (error.to_string(), next.to_owned())
}
