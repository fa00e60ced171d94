//! `switchboard webhooks`: what operators see of webhooks and do with them, beside a running server or on its data alone.

pub mod dead_letters;
pub mod list;
pub mod pause;
pub mod resume;
pub mod retry;
pub mod secret;
pub mod show;

use std::process::ExitCode;

use serde::de::DeserializeOwned;
use switchboard_a2a::Timestamp;
use switchboard_host::control::{Request, WebhookRequest};
use switchboard_host::printer::Printer;
use switchboard_webhooks::DeliveryView;

use crate::cli::DataFlags;
use crate::commands::{loaded_data, refused, short};
use crate::control_client::ControlClient;

/// Sends a request to the control socket and prints its reply with `print`.
fn ask<T: DeserializeOwned>(
    flags: &DataFlags,
    request: WebhookRequest,
    printer: Printer,
    print: impl FnOnce(T),
) -> ExitCode {
    let workspace = match loaded_data(flags, printer) {
        Ok(workspace) => workspace,
        Err(code) => return code,
    };
    let data_dir = workspace.data_dir();
    short(printer, async {
        let answered = match ControlClient::open(&data_dir, false).await {
            Ok(client) => {
                // A running server has its own configuration.
                let client = if workspace.config.webhooks.enabled { client } else { client.with_webhooks_off() };
                client.request::<T>(Request::Webhooks(request)).await
            }
            Err(error) => Err(error),
        };
        match answered {
            Ok(answer) => {
                print(answer);
                ExitCode::SUCCESS
            }
            Err(error) => refused(&error, printer),
        }
    })
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
