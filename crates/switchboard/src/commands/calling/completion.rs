//! `switchboard completion`: what a shell needs to complete our commands and flags.

use std::process::ExitCode;

use clap_complete::Shell;
use switchboard_host::printer::Printer;

pub(crate) fn run(shell: Shell, mut command: clap::Command, printer: Printer) -> Result<(), ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, "switchboard", &mut script);
    printer.raw(script.trim_ascii_end());
    Ok(())
}
