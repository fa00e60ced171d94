//! `switchboard inbox`: questions that wait for an answer, and their decisions.

pub(crate) mod decide;
pub(crate) mod list;
pub(crate) mod show;

use super::hub_client::{HubClient, HubError};
use super::{Failure, sanitize};

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct NamedQuestion {
    /// Id of the question, as the list shows it
    id: String,
}

/// The failure of a command about one question.
fn failed(hub: &HubClient, id: &str, error: HubError) -> Failure {
    let next = match &error {
        error if error.is_code("NOT_FOUND") => hub.command("inbox list", ""),
        error if error.is_code("ALREADY_DECIDED") => hub.command("inbox show", &sanitize::shell_word(id)),
        _ => String::new(),
    };
    error.failure_with(hub, &next)
}
