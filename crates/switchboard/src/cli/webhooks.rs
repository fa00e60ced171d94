//! What can be typed after `switchboard webhooks`.

use std::process::ExitCode;

use clap::Subcommand;
use switchboard_host::config::time_span::TimeSpan;
use switchboard_host::config::value::Scalar;
use switchboard_host::control::LOCAL_CALLER;
use switchboard_host::printer::Printer;

use crate::cli::DataFlags;
use crate::commands::webhooks;

#[derive(Debug, Subcommand)]
pub(super) enum WebhooksCommand {
    /// List webhooks and how far they have come
    List {
        #[command(flatten)]
        options: webhooks::list::WebhookListOptions,
        #[command(flatten)]
        flags: DataFlags,
    },
    /// Show a webhook and its newest deliveries
    Show {
        /// Number of the webhook, as the list shows it
        number: i64,
        #[command(flatten)]
        flags: DataFlags,
    },
    /// Send a delivery once more, or all that were given up
    Retry {
        #[command(flatten)]
        options: webhooks::retry::RetryOptions,
        #[command(flatten)]
        flags: DataFlags,
    },
    /// Hold a webhook back; what it is not told waits
    Pause {
        /// Number of the webhook, as the list shows it
        number: i64,
        #[command(flatten)]
        flags: DataFlags,
    },
    /// Let a paused or disabled webhook go on where it was
    Resume {
        /// Number of the webhook, as the list shows it
        number: i64,
        #[command(flatten)]
        flags: DataFlags,
    },
    /// List deliveries that were given up
    DeadLetters {
        #[command(flatten)]
        page: PageFlags,
        #[command(flatten)]
        flags: DataFlags,
    },
    /// Show or rotate the secrets that deliveries are signed with
    #[command(subcommand)]
    Secret(SecretCommand),
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
        #[arg(long, value_name = "TIME", default_value = "24h", value_parser = time_span)]
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
    pub(super) fn run(self, printer: Printer) -> ExitCode {
        match self {
            Self::List { options, flags } => webhooks::list::run(&flags, options, printer),
            Self::Show { number, flags } => webhooks::show::run(&flags, number, printer),
            Self::Retry { options, flags } => webhooks::retry::run(&flags, options, printer),
            Self::Pause { number, flags } => webhooks::pause::pause(&flags, number, printer),
            Self::Resume { number, flags } => webhooks::pause::resume(&flags, number, printer),
            Self::DeadLetters { page, flags } => webhooks::dead_letters::run(&flags, page, printer),
            Self::Secret(SecretCommand::Show { caller, flags }) => webhooks::secret::show(&flags, caller, printer),
            Self::Secret(SecretCommand::Rotate { overlap, flags }) => {
                webhooks::secret::rotate(&flags, overlap, printer)
            }
        }
    }
}

fn time_span(text: &str) -> Result<TimeSpan, String> {
    TimeSpan::from_text(text).map_err(|mismatch| format!("{}: {}", mismatch.wrong, mismatch.right))
}
