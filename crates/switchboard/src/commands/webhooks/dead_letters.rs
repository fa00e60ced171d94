//! `switchboard webhooks dead-letters`: deliveries that were given up, and why.

use std::process::ExitCode;

use switchboard_host::control::{DeadLetterPage, WebhookRequest};
use switchboard_host::printer::Printer;

use crate::cli::{DataFlags, PageFlags};
use crate::commands::control_request;
use crate::commands::webhooks::{outcome, time};

pub(crate) fn run(flags: &DataFlags, page: PageFlags, printer: Printer) -> Result<(), ExitCode> {
    let request = WebhookRequest::DeadLetters { after: page.after, limit: usize::from(page.limit) };
    control_request(flags, request, None, printer, |answer| print(&answer, page.after, flags, printer))
}

fn print(page: &DeadLetterPage, after: i64, flags: &DataFlags, printer: Printer) {
    if page.dead_letters.is_empty() {
        printer.line(match after {
            0 => "there are no dead letters: no delivery was given up".to_owned(),
            after => format!("there are no dead letters after {after}"),
        });
        return;
    }
    let heading = ["DELIVERY", "WEBHOOK", "TASK", "ENDPOINT", "ABOUT", "ATTEMPTS", "LAST ATTEMPT", "WHY"];
    let rows = page.dead_letters.iter().map(|delivery| {
        let unknown = || "-".to_owned();
        [
            delivery.delivery.to_string(),
            delivery.webhook.to_string(),
            delivery.task_id.clone().unwrap_or_else(unknown),
            delivery.endpoint.clone().unwrap_or_else(unknown),
            delivery.about.clone(),
            delivery.attempts.to_string(),
            time(delivery.last_attempt_at),
            outcome(delivery),
        ]
    });
    printer.titled_table(heading, rows);
    let again = flags.again();
    if let Some(next) = page.next {
        printer.line(format!("there are more: switchboard webhooks dead-letters{again} --after {next}"));
    }
    printer.line(format!(
        "switchboard webhooks retry{again} DELIVERY sends one once more, switchboard webhooks retry{again} --all-dead \
         all of them"
    ));
}
