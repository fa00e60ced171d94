//! `switchboard webhooks retry`: sends a delivery once more, or every one that was given up.

use std::process::ExitCode;

use switchboard_host::control::{RetryReport, WebhookRequest};
use switchboard_host::printer::Printer;

use crate::cli::DataFlags;
use crate::commands::control_request;

#[derive(Debug, Clone, clap::Args)]
// A group, so that the usage error for neither names both.
#[command(group = clap::ArgGroup::new("what").required(true).args(["delivery", "all_dead"]))]
pub(crate) struct RetryOptions {
    /// Number of the delivery, as dead-letters and show list it
    delivery: Option<i64>,

    /// Send every delivery that was given up
    #[arg(long)]
    all_dead: bool,

    /// Only those of this task
    #[arg(long, value_name = "ID", requires = "all_dead", conflicts_with = "delivery")]
    task: Option<String>,
}

pub(crate) fn run(flags: &DataFlags, options: RetryOptions, printer: Printer) -> Result<(), ExitCode> {
    let request = match options.delivery {
        Some(delivery) => WebhookRequest::Retry { delivery },
        None => WebhookRequest::RetryDead { task: options.task },
    };
    control_request(flags, request, None, printer, |answer: RetryReport| {
        let what = match answer.retried {
            0 => {
                printer.line("no delivery was given up, so there is nothing to send");
                return;
            }
            1 => "1 delivery is".to_owned(),
            many => format!("{many} deliveries are"),
        };
        printer.line(match answer.waits {
            None => {
                format!("{what} sent once more; switchboard webhooks show{} NUMBER says how it went", flags.again())
            }
            Some(waits) => format!("{what} sent once more as soon as {}", waits.until()),
        });
    })
}
