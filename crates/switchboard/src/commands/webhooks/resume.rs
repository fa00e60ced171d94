//! `switchboard webhooks resume`: lets a paused or disabled webhook go on where it was.

use std::process::ExitCode;

use serde_json::json;

use crate::cli::DataFlags;
use crate::commands::webhooks::{Answered, ask};
use crate::control::{ShownWebhook, WebhookRequest};
use crate::printer::Printer;

/// Resumes it.
#[must_use]
pub fn run(flags: &DataFlags, webhook: i64, printer: Printer) -> ExitCode {
    let request = WebhookRequest::Resume { webhook };
    ask(flags, request, None, printer, |Answered { answer, running }: Answered<ShownWebhook>| {
        if printer.is_json() {
            printer.json(&json!({ "webhook": answer.webhook }));
            return;
        }
        printer.line(match running {
            true => format!("webhook {webhook} goes on where it was"),
            false => format!("webhook {webhook} goes on where it was as soon as a server runs on this data"),
        });
    })
}
