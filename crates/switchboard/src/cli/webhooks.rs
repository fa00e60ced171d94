//! What can be typed after `switchboard webhooks`.

use std::process::ExitCode;

use clap::Subcommand;
use switchboard_host::config::time_span::TimeSpan;
use switchboard_host::control::LOCAL_CALLER;
use switchboard_host::printer::Printer;

use crate::cli::{DataFlags, OnData, scalar};
use crate::commands::webhooks;

#[derive(Debug, Subcommand)]
pub(super) enum WebhooksCommand {
    /// List webhooks and how far they have come
    List(OnData<webhooks::list::WebhookListOptions>),
    /// Show a webhook and its newest deliveries
    Show(OnData<WebhookNumber>),
    /// Send a delivery once more, or all that were given up
    Retry(OnData<webhooks::retry::RetryOptions>),
    /// Hold a webhook back; what it is not told waits
    Pause(OnData<WebhookNumber>),
    /// Let a paused or disabled webhook go on where it was
    Resume(OnData<WebhookNumber>),
    /// List deliveries that were given up
    DeadLetters(OnData<PageFlags>),
    /// Show or rotate the secrets that deliveries are signed with
    #[command(subcommand)]
    Secret(SecretCommand),
}

#[derive(Debug, clap::Args)]
pub(super) struct WebhookNumber {
    /// Number of the webhook, as the list shows it
    number: i64,
}

#[derive(Debug, Subcommand)]
pub(super) enum SecretCommand {
    /// Show a caller's secret, which its receivers check signatures with
    Show {
        /// Whose: the id of a key, or local for callers of a server without keys
        #[arg(long, value_name = "ID", default_value = LOCAL_CALLER)]
        caller: String,
        #[command(flatten)]
        flags: DataFlags,
    },
    /// Give every caller a new secret
    Rotate {
        /// Time for which deliveries are signed with the old one too; 0s ends it at once
        #[arg(long, value_name = "TIME", default_value = "24h", value_parser = scalar::<TimeSpan>)]
        overlap: TimeSpan,
        #[command(flatten)]
        flags: DataFlags,
    },
}

/// Which part of a long list.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct PageFlags {
    /// Begin after this number
    #[arg(long, value_name = "NUMBER", default_value_t = 0, hide_default_value = true)]
    pub(crate) after: i64,

    /// Show at most so many
    #[arg(long, value_name = "COUNT", default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) limit: u16,
}

impl WebhooksCommand {
    pub(super) fn run(self, printer: Printer) -> Result<(), ExitCode> {
        match self {
            Self::List(OnData { options, flags }) => webhooks::list::run(&flags, options, printer),
            Self::Show(OnData { options, flags }) => webhooks::show::run(&flags, options.number, printer),
            Self::Retry(OnData { options, flags }) => webhooks::retry::run(&flags, options, printer),
            Self::Pause(OnData { options, flags }) => webhooks::pause::pause(&flags, options.number, printer),
            Self::Resume(OnData { options, flags }) => webhooks::pause::resume(&flags, options.number, printer),
            Self::DeadLetters(OnData { options, flags }) => webhooks::dead_letters::run(&flags, options, printer),
            Self::Secret(SecretCommand::Show { caller, flags }) => webhooks::secret::show(&flags, caller, printer),
            Self::Secret(SecretCommand::Rotate { overlap, flags }) => {
                webhooks::secret::rotate(&flags, overlap, printer)
            }
        }
    }
}
