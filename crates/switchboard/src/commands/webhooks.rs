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
use switchboard_webhooks::DeliveryView;

use crate::cli::DataFlags;
use crate::commands::{loaded, refused, short};
use crate::control::{Door, DoorError, Request, WebhookRequest};
use crate::printer::Printer;

/// An answer, and whether a running server gave it.
struct Answered<T> {
    answer: T,
    running: bool,
}

/// Asks, and prints the answer in a way of the command's own. Where there is no data, `nothing` is the answer, if the
/// command has one for that.
fn ask<T: DeserializeOwned>(
    flags: &DataFlags,
    request: WebhookRequest,
    nothing: Option<T>,
    printer: Printer,
    print: impl FnOnce(Answered<T>),
) -> ExitCode {
    let workspace = match loaded(flags.load(), printer) {
        Ok(workspace) => workspace,
        Err(code) => return code,
    };
    let data_dir = workspace.data_dir();
    short(printer, async {
        let answered = match (Door::find(&data_dir, false).await, nothing) {
            (Ok(door), _) => {
                let running = door.is_server();
                let asked = door.ask::<T>(Request::Webhooks(request)).await;
                asked.map(|answer| Answered { answer, running })
            }
            (Err(DoorError::NoData(_)), Some(answer)) => Ok(Answered { answer, running: false }),
            (Err(error), _) => Err(error),
        };
        match answered {
            Ok(answered) => {
                print(answered);
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

/// What the last attempt came to, in a table.
fn outcome(delivery: &DeliveryView) -> String {
    match (delivery.problem.as_str(), delivery.status) {
        ("", Some(status)) => status.to_string(),
        ("", None) => "-".to_owned(),
        (problem, _) => problem.to_owned(),
    }
}
