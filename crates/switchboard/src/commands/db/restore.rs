//! `switchboard db restore`: puts a backup in the place of the data file. Refused while a server runs.

use std::path::Path;
use std::process::ExitCode;

use serde_json::json;
use switchboard_engine::clock::{Clock, SystemClock};
use switchboard_host::printer::Printer;
use switchboard_host::sanitize::shell_path;
use switchboard_host::serve::{create_data_dir, open_problem};
use switchboard_store::{CheckError, OpenError, RestoreError, Restored};

use crate::cli::DataFlags;
use crate::commands::loaded_data;

pub(crate) fn run(flags: &DataFlags, file: &Path, printer: Printer) -> Result<(), ExitCode> {
    let workspace = loaded_data(flags, printer)?;
    let created = create_data_dir(&workspace.data_dir());
    let data_dir =
        created.map_err(|error| printer.failure(&error.to_string(), &flags.in_commands(&error.next_step())))?;
    // A colon in a file's name is trouble on other systems.
    let stamp = SystemClock.now().to_string().replace(':', "-");
    let restored = switchboard_store::restore(&data_dir, file, &stamp).map_err(|error| {
        let (problem, next) = refusal(error, &data_dir, file);
        printer.failure(&problem, &flags.in_commands(&next))
    })?;
    print(&restored, file, &data_dir, &flags.again(), printer);
    Ok(())
}

fn print(restored: &Restored, file: &Path, data_dir: &Path, flags: &str, printer: Printer) {
    let Restored { report, schema, before } = restored;
    if printer.is_json() {
        printer.json(&json!({
            "file": file,
            "dataDir": data_dir,
            "before": before,
            "schema": schema,
            "tasks": report.tasks,
            "eventRows": report.event_rows,
        }));
        return;
    }
    printer.line(format!("restored {}: {} tasks in {} event rows", file.display(), report.tasks, report.event_rows));
    if let Some(before) = before {
        printer.line(format!("the data from before is in {}", before.display()));
    }
    printer.line(
        "what happened after the backup is not in it: tasks and keys made since are gone, and keys revoked since",
    );
    printer.line(format!("are good again (switchboard keys list{flags}); switchboard serve{flags} starts the server"));
}

/// Why it was not restored, and what to do; the data is as it was.
fn refusal(error: RestoreError, data_dir: &Path, file: &Path) -> (String, String) {
    let problem = error.to_string();
    let next = match error {
        RestoreError::Directory(OpenError::Held { directory, holder }) => {
            let problem = format!("the data directory {} is in use by {holder}", directory.display());
            return (problem, "stop that server, then run this again; nothing was changed".to_owned());
        }
        RestoreError::Directory(error) => {
            let error = open_problem(data_dir, error);
            return (error.to_string(), error.next_step());
        }
        RestoreError::Unusable { source: CheckError::Missing(_) | CheckError::Directory(_), .. } => {
            "name a file that db backup has written"
        }
        RestoreError::Unusable { source: CheckError::NewerSchema(_), .. } => {
            "use the switchboard program that wrote it, or a later one; nothing was changed"
        }
        RestoreError::Unusable { source: CheckError::OlderSchema(_), .. } => {
            "name a file that db backup has written; nothing was changed"
        }
        RestoreError::Unusable { .. } => "restore an earlier backup; nothing was changed",
        RestoreError::Damaged { .. } => {
            let check = format!("switchboard db check {}", shell_path(file));
            return (problem, format!("{check} names all of them; restore an earlier backup; nothing was changed"));
        }
        RestoreError::Same(_) => "name a file that db backup has written",
        RestoreError::Locked(_) => "close that program; nothing was changed",
        RestoreError::File { .. } | RestoreError::Copy(_) => {
            "check that there is room on the disk and that this user may write there"
        }
    };
    (problem, next.to_owned())
}
