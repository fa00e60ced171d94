//! `switchboard webhooks list`: which webhooks there are, where they go and how far they have come.

use std::process::ExitCode;

use switchboard_host::control::{WebhookPage, WebhookRequest};
use switchboard_host::printer::Printer;
use switchboard_webhooks::WebhookView;

use crate::cli::{DataFlags, PageFlags};
use crate::commands::control_request;
use crate::commands::webhooks::time;

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct WebhookListOptions {
    /// Only those of this task
    #[arg(long, value_name = "ID")]
    task: Option<String>,

    /// Only those in this state
    #[arg(long, value_parser = ["active", "paused", "disabled", "finished"])]
    state: Option<String>,

    #[command(flatten)]
    page: PageFlags,
}

pub(crate) fn run(flags: &DataFlags, options: WebhookListOptions, printer: Printer) -> Result<(), ExitCode> {
    let WebhookListOptions { task, state, page } = options;
    let some_only = task.is_some() || state.is_some() || page.after > 0;
    let filter = match (&task, &state) {
        (None, None) => String::new(),
        (task, state) => {
            let flag = |name: &str, value: &Option<String>| value.as_ref().map(|value| format!(" --{name} {value}"));
            flag("task", task).unwrap_or_default() + &flag("state", state).unwrap_or_default()
        }
    };
    let request = WebhookRequest::List { task, state, after: page.after, limit: usize::from(page.limit) };
    control_request(flags, request, None, printer, |answer| print(&answer, some_only, &filter, flags, printer))
}

fn print(page: &WebhookPage, some_only: bool, filter: &str, flags: &DataFlags, printer: Printer) {
    let again = flags.again();
    if page.webhooks.is_empty() {
        printer.line(match some_only {
            true => format!("no webhook is like that; switchboard webhooks list{again} shows all of them"),
            false => {
                "there are no webhooks; a caller sets one with a message (configuration.taskPushNotificationConfig) \
                      or for a task it has (CreateTaskPushNotificationConfig)"
                    .to_owned()
            }
        });
        return;
    }
    let heading = ["NUMBER", "STATE", "TASK", "AGENT", "CALLER", "ENDPOINT", "DELIVERED", "DEAD", "WAITS UNTIL"];
    printer.titled_table(heading, page.webhooks.iter().map(row));
    if let Some(next) = page.next {
        printer.line(format!("there are more: switchboard webhooks list{again}{filter} --after {next}"));
    }
    if page.webhooks.iter().any(|webhook| webhook.dead > 0) {
        printer.line(format!("dead ones were given up: switchboard webhooks dead-letters{again} says why"));
    }
}

fn row(webhook: &WebhookView) -> [String; 9] {
    let due = webhook.pending.as_ref().and_then(|pending| pending.next_attempt_at);
    // Behind a paused endpoint the next delivery is not even made. Whichever is later is what it waits for.
    let has_more = webhook.pending.is_some() || (webhook.lags && webhook.state == "active");
    let waits = due.max(webhook.endpoint_paused_until.filter(|_| has_more));
    [
        webhook.webhook.to_string(),
        webhook.state.clone(),
        webhook.task_id.clone(),
        webhook.agent.clone(),
        webhook.caller.clone(),
        webhook.endpoint.clone(),
        webhook.delivered.to_string(),
        webhook.dead.to_string(),
        time(waits),
    ]
}
