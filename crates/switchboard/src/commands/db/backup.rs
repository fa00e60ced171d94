//! `switchboard db backup`: a consistent copy of the data file, taken while a server writes to it.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use switchboard_host::control::{BackupReport, Request};
use switchboard_host::printer::Printer;
use switchboard_host::sanitize::shell_path;

use crate::cli::DataFlags;
use crate::commands::{loaded_data, refused, short};
use crate::control_client::ControlClient;

/// Copies the file.
#[must_use]
pub fn run(flags: &DataFlags, file: &Path, printer: Printer) -> ExitCode {
    let workspace = match loaded_data(flags, printer) {
        Ok(workspace) => workspace,
        Err(code) => return code,
    };
    let data_dir = workspace.data_dir();
    // The server stands elsewhere.
    let file: PathBuf = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    short(printer, async {
        let made = match ControlClient::open(&data_dir, false).await {
            Ok(client) => client.request::<BackupReport>(Request::Backup { file }).await,
            Err(error) => Err(error),
        };
        match made {
            Ok(made) if printer.is_json() => {
                printer.json(&made);
                ExitCode::SUCCESS
            }
            Ok(made) => {
                printer.line(format!("{} ({} bytes)", made.file.display(), made.bytes));
                let (file, flags) = (shell_path(&made.file), flags.again());
                printer.line(format!("switchboard db restore{flags} {file} puts it back, while no server runs"));
                ExitCode::SUCCESS
            }
            Err(error) => refused(&error, printer),
        }
    })
}
