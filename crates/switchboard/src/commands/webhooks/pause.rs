//! `switchboard webhooks pause` and `resume`: holds a webhook back, and lets it go on where it was.

use std::process::ExitCode;

use switchboard_host::control::{ChangedWebhook, WebhookRequest};
use switchboard_host::printer::Printer;

use crate::cli::DataFlags;
use crate::commands::control_request;

pub(crate) fn pause(flags: &DataFlags, webhook: i64, printer: Printer) -> Result<(), ExitCode> {
    control_request(flags, WebhookRequest::Pause { webhook }, None, printer, |_: ChangedWebhook| {
        printer.line(format!(
            "webhook {webhook} is paused; what it is not told waits for switchboard webhooks resume{} {webhook}",
            flags.again()
        ));
    })
}

pub(crate) fn resume(flags: &DataFlags, webhook: i64, printer: Printer) -> Result<(), ExitCode> {
    control_request(flags, WebhookRequest::Resume { webhook }, None, printer, |answer: ChangedWebhook| {
        printer.line(match answer.waits {
            None => format!("webhook {webhook} goes on where it was"),
            Some(waits) => format!("webhook {webhook} goes on where it was as soon as {}", waits.until()),
        });
    })
}
