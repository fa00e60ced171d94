//! `switchboard webhooks`: what operators see of webhooks and do with them, beside a running server or on its data alone.

pub(crate) mod dead_letters;
pub(crate) mod list;
pub(crate) mod pause;
pub(crate) mod retry;
pub(crate) mod secret;
pub(crate) mod show;

use std::process::ExitCode;

use serde::Serialize;
use serde::de::DeserializeOwned;
use switchboard_a2a::Timestamp;
use switchboard_host::control::{Request, WebhookRequest};
use switchboard_host::printer::Printer;
use switchboard_webhooks::DeliveryView;

use crate::cli::DataFlags;
use crate::commands::control_request;

/// Sends a request about webhooks, as [`control_request`] does.
fn send_request<T: Serialize + DeserializeOwned>(
    flags: &DataFlags,
    request: WebhookRequest,
    printer: Printer,
    print: impl FnOnce(T),
) -> ExitCode {
    control_request(flags, Request::Webhooks(request), None, printer, print)
}

fn time(at: Option<Timestamp>) -> String {
    at.map_or_else(|| "-".to_owned(), |at| at.to_string())
}

fn outcome(delivery: &DeliveryView) -> String {
    match (delivery.problem.as_str(), delivery.status) {
        ("", Some(status)) => status.to_string(),
        ("", None) => "-".to_owned(),
        (problem, _) => problem.to_owned(),
    }
}
