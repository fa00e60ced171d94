//! What can be typed about the inbox.

use std::process::ExitCode;

use clap::Subcommand;
use switchboard_host::printer::Printer;

use super::{EXIT_CODES, HubFlags, OnHub};
use crate::commands::calling::inbox::{NamedQuestion, decide, list, show};

pub(super) const INBOX: &str = with_hub_exit_codes!(
    "Every question that waits for an answer, of every agent. Without a command the open ones are listed, the oldest first. A key without a role sees those of its own tasks, and decides what they leave to their caller; with the role operator a key decides all questions of the agents that it may call. The first decision counts.",
    "",
    "Examples:",
    "  switchboard inbox                                     what waits",
    "  switchboard inbox show ID                             one question, whole",
    "  switchboard inbox approve ID",
    "  switchboard inbox reject ID --feedback \"not on a Friday\"",
    "  switchboard inbox answer ID --text \"the blue one\"",
    ""
);

#[derive(Debug, Subcommand)]
pub(crate) enum InboxCommand {
    /// List questions that wait for an answer, or what was decided
    #[command(after_help = INBOX)]
    List(OnHub<list::ListOptions>),
    /// Show a question, whole, with its options or its decision
    #[command(after_help = EXIT_CODES)]
    Show(OnHub<NamedQuestion>),
    /// Say yes
    #[command(after_help = EXIT_CODES)]
    Approve(OnHub<decide::ApproveOptions>),
    /// Say no
    #[command(after_help = EXIT_CODES)]
    Reject(OnHub<decide::RejectOptions>),
    /// Say yes, and what to do instead
    #[command(after_help = EXIT_CODES)]
    Modify(OnHub<decide::ModifyOptions>),
    /// Answer
    #[command(after_help = EXIT_CODES)]
    Answer(OnHub<decide::AnswerOptions>),
}

impl InboxCommand {
    pub(super) fn run(self, printer: Printer) -> Result<(), ExitCode> {
        match self {
            Self::List(OnHub { options, flags }) => list::run(&flags, &options, printer),
            Self::Show(OnHub { options, flags }) => show::run(&flags, &options, printer),
            Self::Approve(OnHub { options, flags }) => decide::approve(&flags, &options, printer),
            Self::Reject(OnHub { options, flags }) => decide::reject(&flags, &options, printer),
            Self::Modify(OnHub { options, flags }) => decide::modify(&flags, &options, printer),
            Self::Answer(OnHub { options, flags }) => decide::answer(&flags, &options, printer),
        }
    }
}

/// What `switchboard inbox` does without a command.
pub(super) fn list_open(flags: &HubFlags, printer: Printer) -> Result<(), ExitCode> {
    list::run(flags, &list::ListOptions::default(), printer)
}
