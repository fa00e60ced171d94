//! `switchboard webhooks resume`: lets a paused or disabled webhook go on where it was.

use std::process::ExitCode;

use switchboard_host::control::{ChangedWebhook, WebhookRequest};
use switchboard_host::printer::Printer;

use crate::cli::DataFlags;
use crate::commands::webhooks::ask;

/// Resumes it.
#[must_use]
pub fn run(flags: &DataFlags, webhook: i64, printer: Printer) -> ExitCode {
    let request = WebhookRequest::Resume { webhook };
    ask(flags, request, printer, |answer: ChangedWebhook| {
        if printer.is_json() {
            printer.json(&answer);
            return;
        }
        printer.line(match answer.waits {
            None => format!("webhook {webhook} goes on where it was"),
            Some(waits) => format!("webhook {webhook} goes on where it was as soon as {}", waits.until()),
        });
    })
}
