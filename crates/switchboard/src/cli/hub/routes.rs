//! What can be typed about routes.

use std::process::ExitCode;

use clap::Subcommand;
use switchboard_host::printer::Printer;

use super::{EXIT_CODES, HubFlags, OnHub};
use crate::commands::calling::routes::{NamedRoute, create, delete, list, show};

pub(super) const ROUTES: &str = with_hub_exit_codes!(
    "A route says which events it is about, and what is done for them: a message to an agent, or a POST to an address. Without a command the routes are listed, which needs the role viewer. Those of routes.d are changed there; create and delete are for routes that are registered with the server, and need the role admin.",
    "",
    "Examples:",
    "  switchboard routes                                    all of them, and what they owe",
    "  switchboard routes create failures.yaml               register one",
    "  switchboard routes show failures                      what went wrong last",
    ""
);

#[derive(Debug, Subcommand)]
pub(crate) enum RoutesCommand {
    /// List the routes: what they are about, what they do, what they owe
    #[command(after_help = ROUTES)]
    List(HubFlags),
    /// Show a route, what it owes and what went wrong last
    #[command(after_help = EXIT_CODES)]
    Show(OnHub<NamedRoute>),
    /// Register a route with the server, from a file like those of routes.d
    #[command(after_help = EXIT_CODES)]
    Create(OnHub<create::CreateOptions>),
    /// Remove a registered route and what it owes
    #[command(after_help = EXIT_CODES)]
    Delete(OnHub<NamedRoute>),
}

impl RoutesCommand {
    pub(super) fn run(self, printer: Printer) -> Result<(), ExitCode> {
        match self {
            Self::List(flags) => list::run(&flags, printer),
            Self::Show(OnHub { options, flags }) => show::run(&flags, &options, printer),
            Self::Create(OnHub { options, flags }) => create::run(&flags, &options, printer),
            Self::Delete(OnHub { options, flags }) => delete::run(&flags, &options, printer),
        }
    }
}

/// What `switchboard routes` does without a command.
pub(super) fn list_all(flags: &HubFlags, printer: Printer) -> Result<(), ExitCode> {
    list::run(flags, printer)
}
