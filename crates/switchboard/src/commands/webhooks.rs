//! `switchboard webhooks`: what operators see of webhooks and do with them, beside a running server or on its data alone.

pub mod dead_letters;
pub mod list;
pub mod pause;
pub mod retry;
pub mod secret;
pub mod show;

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

/// A time in a table.
fn time(at: Option<Timestamp>) -> String {
    at.map_or_else(|| "-".to_owned(), |at| at.to_string())
}

/// The outcome of the last attempt, for a table.
fn outcome(delivery: &DeliveryView) -> String {
    match (delivery.problem.as_str(), delivery.status) {
        ("", Some(status)) => status.to_string(),
        ("", None) => "-".to_owned(),
        (problem, _) => problem.to_owned(),
    }
}
