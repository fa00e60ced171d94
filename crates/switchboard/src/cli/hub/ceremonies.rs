//! What can be typed about ceremonies.

use std::process::ExitCode;

use clap::Subcommand;
use switchboard_host::printer::Printer;

use super::{EXIT_CODES, HubFlags, OnHub};
use crate::commands::calling::ceremonies::{NamedCeremony, create, delete, list, run, runs, show, update};

pub(super) const CEREMONIES: &str = with_hub_exit_codes!(
    "A ceremony runs a skill on one, several or all agents by a schedule. Without a command they are listed: your own, with the role viewer all of them. Those of the folder ceremonies are changed there; create, update and delete are for ceremonies that are registered with the server, and belong to who has created them.",
    "",
    "Examples:",
    "  switchboard ceremonies                                all of them, when they are due, what was last",
    "  switchboard ceremonies create triage.yaml             register one",
    "  switchboard ceremonies update triage schedule='0 8 * * MON-FRI' timezone=Europe/Berlin",
    "  switchboard ceremonies update triage enabled=false    pause it",
    "  switchboard ceremonies run triage                     now, whatever its schedule says",
    "  switchboard ceremonies runs triage                    its history",
    ""
);

const UPDATE: &str = with_hub_exit_codes!(
    "A value is JSON, else a text; null takes a member away. What is not named stays as it is.",
    "",
    "Examples:",
    "  switchboard ceremonies update triage schedule='0 8 * * MON-FRI'",
    "  switchboard ceremonies update triage 'targets=[\"echo\", \"guide\"]' fanout=first",
    "  switchboard ceremonies update triage content=null",
    ""
);

#[derive(Debug, Subcommand)]
pub(crate) enum CeremoniesCommand {
    /// List the ceremonies: when they are due, and what was last
    #[command(after_help = CEREMONIES)]
    List(HubFlags),
    /// Show a ceremony, its next runs and what was last
    #[command(after_help = EXIT_CODES)]
    Show(OnHub<NamedCeremony>),
    /// Register a ceremony with the server, from a file like those of the folder ceremonies
    #[command(after_help = EXIT_CODES)]
    Create(OnHub<create::CreateOptions>),
    /// Change members of a registered ceremony
    #[command(after_help = UPDATE)]
    Update(OnHub<update::UpdateOptions>),
    /// Delete a registered ceremony; what it has begun goes on
    #[command(after_help = EXIT_CODES)]
    Delete(OnHub<NamedCeremony>),
    /// Run a ceremony now, whatever its schedule says
    #[command(after_help = EXIT_CODES)]
    Run(OnHub<NamedCeremony>),
    /// List the runs of a ceremony, newest first
    #[command(after_help = EXIT_CODES)]
    Runs(OnHub<NamedCeremony>),
}

impl CeremoniesCommand {
    pub(super) fn run(self, printer: Printer) -> Result<(), ExitCode> {
        match self {
            Self::List(flags) => list::run(&flags, printer),
            Self::Show(OnHub { options, flags }) => show::run(&flags, &options, printer),
            Self::Create(OnHub { options, flags }) => create::run(&flags, &options, printer),
            Self::Update(OnHub { options, flags }) => update::run(&flags, &options, printer),
            Self::Delete(OnHub { options, flags }) => delete::run(&flags, &options, printer),
            Self::Run(OnHub { options, flags }) => run::run(&flags, &options, printer),
            Self::Runs(OnHub { options, flags }) => runs::run(&flags, &options, printer),
        }
    }
}

/// What `switchboard ceremonies` does without a command.
pub(super) fn list_all(flags: &HubFlags, printer: Printer) -> Result<(), ExitCode> {
    list::run(flags, printer)
}
