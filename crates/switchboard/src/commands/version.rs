//! `switchboard version`: what to put into a bug report.

use std::process::ExitCode;

use serde_json::json;
use switchboard_host::printer::Printer;

pub(crate) fn run(printer: Printer) -> Result<(), ExitCode> {
    let version = env!("CARGO_PKG_VERSION");
    let (system, architecture) = (std::env::consts::OS, std::env::consts::ARCH);
    if printer.is_json() {
        printer.json(&json!({ "version": version, "system": system, "architecture": architecture }));
    } else {
        printer.line(format!("switchboard {version} ({system}, {architecture})"));
    }
    Ok(())
}
