//! `switchboard webhooks show`: one webhook, and what became of its newest deliveries.

use std::process::ExitCode;

use switchboard_host::control::{WebhookDetails, WebhookRequest};
use switchboard_host::printer::Printer;
use switchboard_webhooks::{DeliveryView, WebhookView};

use crate::cli::DataFlags;
use crate::commands::control_request;
use crate::commands::webhooks::{outcome, time};

pub(crate) fn run(flags: &DataFlags, webhook: i64, printer: Printer) -> Result<(), ExitCode> {
    control_request(flags, WebhookRequest::Show { webhook }, None, printer, |answer: WebhookDetails| {
        print_webhook(&answer.webhook, printer);
        printer.line("");
        print_deliveries(&answer.deliveries, flags, printer);
    })
}

fn print_webhook(webhook: &WebhookView, printer: Printer) {
    let rows = [
        ("webhook", webhook.webhook.to_string()),
        ("state", webhook.state.clone()),
        ("task", webhook.task_id.clone()),
        ("id", webhook.id.clone()),
        ("agent", webhook.agent.clone()),
        ("caller", webhook.caller.clone()),
        ("endpoint", webhook.endpoint.clone()),
        ("version", webhook.version.clone()),
        ("created", webhook.created_at.to_string()),
        ("told up to event", webhook.cursor.to_string()),
        ("there is more to tell", if webhook.lags { "yes" } else { "no" }.to_owned()),
    ];
    let paused = |until| ("endpoint paused until", format!("{until}, because it keeps failing"));
    printer.fields(rows.into_iter().chain(webhook.endpoint_paused_until.map(paused)));
}

fn print_deliveries(deliveries: &[DeliveryView], flags: &DataFlags, printer: Printer) {
    if deliveries.is_empty() {
        printer.line("nothing was delivered yet");
        return;
    }
    let heading =
        ["DELIVERY", "EVENT", "ABOUT", "STATE", "ATTEMPTS", "LAST ATTEMPT", "TOOK", "OUTCOME", "NEXT ATTEMPT"];
    let rows = deliveries.iter().map(|delivery| {
        [
            delivery.delivery.to_string(),
            delivery.event.clone(),
            delivery.about.clone(),
            delivery.state.clone(),
            delivery.attempts.to_string(),
            time(delivery.last_attempt_at),
            delivery.duration_ms.map_or_else(|| "-".to_owned(), |took| format!("{took}ms")),
            outcome(delivery),
            time(delivery.next_attempt_at),
        ]
    });
    printer.titled_table(heading, rows);
    if deliveries.iter().any(|delivery| delivery.state == "dead") {
        printer.line(format!("switchboard webhooks retry{} DELIVERY sends one once more", flags.again()));
    }
}
