//! `switchboard webhooks pause`: holds a webhook back until it is resumed.

use std::process::ExitCode;

use switchboard_host::control::{ChangedWebhook, WebhookRequest};
use switchboard_host::printer::Printer;

use crate::cli::DataFlags;
use crate::commands::webhooks::ask;

/// Pauses it.
#[must_use]
pub fn run(flags: &DataFlags, webhook: i64, printer: Printer) -> ExitCode {
    let request = WebhookRequest::Pause { webhook };
    ask(flags, request, printer, |answer: ChangedWebhook| {
        if printer.is_json() {
            printer.json(&answer);
            return;
        }
        printer.line(format!(
            "webhook {webhook} is paused; what it is not told waits for switchboard webhooks resume {webhook}"
        ));
    })
}
