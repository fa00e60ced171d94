//! `switchboard ceremonies`: runs by a schedule, from files of the workspace or registered with the server.

pub(crate) mod create;
pub(crate) mod delete;
pub(crate) mod list;
pub(crate) mod run;
pub(crate) mod runs;
pub(crate) mod show;
pub(crate) mod update;

use serde_json::Value;
use switchboard_host::config::suggestion::nearest;

use super::hub_client::{HubClient, HubError};
use super::{Failure, figures, sanitize};

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct NamedCeremony {
    /// Id of the ceremony, as the list shows it
    id: String,
}

/// Every ceremony that may be seen: all with a role, else one's own.
async fn all(hub: &HubClient) -> Result<Vec<Value>, HubError> {
    match pages(hub, true).await {
        Err(error) if error.is_code("FORBIDDEN") => pages(hub, false).await,
        found => found,
    }
}

async fn pages(hub: &HubClient, of_all: bool) -> Result<Vec<Value>, HubError> {
    let (mut found, mut after): (Vec<Value>, Option<String>) = (Vec::new(), None);
    loop {
        let mut url = hub.url(&["api", "ceremonies"]);
        url.query_pairs_mut().append_pair("pageSize", "100");
        if of_all {
            url.query_pairs_mut().append_pair("all", "true");
        }
        if let Some(after) = &after {
            url.query_pairs_mut().append_pair("after", after);
        }
        let mut page = hub.call(http::Method::GET, url, None).await?;
        let Value::Array(items) = page["items"].take() else { return Ok(found) };
        let is_empty = items.is_empty();
        found.extend(items);
        let next = page["next"].as_str().map(str::to_owned);
        // A page that leads nowhere is the last one.
        if next.is_none() || is_empty || next == after {
            return Ok(found);
        }
        after = next;
    }
}

/// When a ceremony is due.
fn when(ceremony: &Value) -> String {
    let zone = ceremony["timezone"].as_str().unwrap_or("UTC");
    let text = match (ceremony["schedule"].as_str(), ceremony["at"].as_str()) {
        (Some(schedule), _) => format!("{schedule} {zone}"),
        (None, at) => format!("at {}", at.unwrap_or("-")),
    };
    sanitize::line(&text)
}

/// When it is due next, in its zone.
fn next(ceremony: &Value) -> String {
    match ceremony["enabled"] == false {
        true => "disabled".to_owned(),
        false => figures::text(&ceremony["next"][0]["local"]),
    }
}

/// The same within a sentence.
fn due(ceremony: &Value) -> String {
    match ceremony["enabled"] == false {
        true => "disabled".to_owned(),
        false => format!("due {}", next(ceremony)),
    }
}

/// What became of the time before.
fn last(ceremony: &Value) -> String {
    let last = &ceremony["last"];
    match (last["at"].as_str(), last["skipped"].as_str()) {
        (None, _) => "-".to_owned(),
        (Some(at), Some(reason)) => sanitize::line(&format!("skipped ({reason}) {at}")),
        (Some(at), None) => sanitize::line(&format!("{} {at}", last["state"].as_str().unwrap_or("done"))),
    }
}

/// What is run, and where.
fn what(ceremony: &Value) -> String {
    let targets = match &ceremony["targets"] {
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", "),
        _ => "all".to_owned(),
    };
    let topic = ceremony["publish"]["topic"].as_str().map(|topic| format!("publish {topic}"));
    let text = match (ceremony["skill"].as_str(), topic) {
        (Some(skill), _) => format!("skill {skill} to {targets}"),
        (None, Some(topic)) if ceremony["targets"].is_null() => topic,
        (None, _) => format!("to {targets}"),
    };
    sanitize::line(&text)
}

/// The failure of a command about one ceremony. An id that is not known gets the nearest one that is.
async fn failed(hub: &HubClient, id: &str, error: HubError) -> Failure {
    let next = match &error {
        error if error.is_code("NOT_FOUND") => {
            let known = all(hub).await.unwrap_or_default();
            let ids = known.iter().filter_map(|ceremony| ceremony["id"].as_str());
            match nearest(id, ids) {
                Some(meant) => format!("did you mean {}?", sanitize::line(meant)),
                None => hub.command("ceremonies list", ""),
            }
        }
        error if error.is_code("IN_FILE") => "change its file; the server follows it".to_owned(),
        error if error.is_code("EXISTS") => hub.command("ceremonies update", "ID KEY=VALUE"),
        _ => String::new(),
    };
    error.failure_with(hub, &next)
}
