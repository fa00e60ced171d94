//! `switchboard webhooks pause`: holds a webhook back until it is resumed.

use std::process::ExitCode;

use serde_json::json;

use crate::cli::DataFlags;
use crate::commands::webhooks::{Answered, ask};
use crate::control::{ShownWebhook, WebhookRequest};
use crate::printer::Printer;

/// Pauses it.
#[must_use]
pub fn run(flags: &DataFlags, webhook: i64, printer: Printer) -> ExitCode {
    let request = WebhookRequest::Pause { webhook };
    ask(flags, request, None, printer, |Answered { answer, .. }: Answered<ShownWebhook>| {
        if printer.is_json() {
            printer.json(&json!({ "webhook": answer.webhook }));
            return;
        }
        printer.line(format!(
            "webhook {webhook} is paused; what it is not told waits for switchboard webhooks resume {webhook}"
        ));
    })
}
