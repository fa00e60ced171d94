//! `switchboard db backup`: a consistent copy of the data file, taken while a server writes to it.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use switchboard_host::control::{BackupReport, Request};
use switchboard_host::printer::Printer;
use switchboard_host::sanitize::shell_path;

use crate::cli::DataFlags;
use crate::commands::control_request;

pub(crate) fn run(flags: &DataFlags, file: &Path, printer: Printer) -> Result<(), ExitCode> {
    // The server has another current folder.
    let file: PathBuf = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    control_request(flags, Request::Backup { file }, None, printer, |made: BackupReport| {
        printer.line(format!("{} ({} bytes)", made.file.display(), made.bytes));
        let (file, flags) = (shell_path(&made.file), flags.again());
        printer.line(format!("switchboard db restore{flags} {file} puts it back, while no server runs"));
    })
}
