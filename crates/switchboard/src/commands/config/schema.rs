//! `switchboard config schema`: the JSON schema of a file, for editors and for continuous integration.

use std::process::ExitCode;

use switchboard_host::config::schema;
use switchboard_host::printer::Printer;

use switchboard_fleet::config::agents::Agents;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum SchemaFile {
    /// switchboard.yaml
    #[default]
    Switchboard,
    /// agents.yaml and the files in agents.d/
    Agents,
}

/// Prints the schema; it is JSON in either form of output.
pub(crate) fn run(file: SchemaFile, printer: Printer) -> Result<(), ExitCode> {
    match file {
        SchemaFile::Switchboard => printer.json(&schema::switchboard()),
        SchemaFile::Agents => printer.json(&schema::of_file::<Agents>()),
    }
    Ok(())
}
