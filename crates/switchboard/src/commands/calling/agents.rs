//! `switchboard agents`: which agents there are, and the registrations of agents elsewhere.

pub(crate) mod accept;
pub(crate) mod add;
mod entry;
mod file;
pub(crate) mod list;
pub(crate) mod probe;
pub(crate) mod refresh;
pub(crate) mod remove;
pub(crate) mod rollcall;
pub(crate) mod show;
pub(crate) mod update;

pub(super) use self::file::read as read_file;

use serde_json::Value;
use switchboard_host::config::suggestion::nearest;

use super::hub_client::{HubClient, HubError};
use super::{Failure, sanitize};

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct NamedAgent {
    /// Name of the agent, as the list shows it
    pub(crate) name: String,
}

/// Every agent that the key may call, and the problems of files that the server could not read.
async fn all(hub: &HubClient) -> Result<(Vec<Value>, Vec<Value>), HubError> {
    let (mut agents, mut after): (Vec<Value>, Option<String>) = (Vec::new(), None);
    loop {
        let mut url = hub.url(&["api", "agents"]);
        url.query_pairs_mut().append_pair("pageSize", "100");
        if let Some(after) = &after {
            url.query_pairs_mut().append_pair("after", after);
        }
        let mut page = hub.call(http::Method::GET, url, None).await?;
        let Value::Array(items) = page["items"].take() else { return Ok((agents, Vec::new())) };
        let is_empty = items.is_empty();
        agents.extend(items);
        let next = page["next"].as_str().map(str::to_owned);
        // A page that leads nowhere is the last one.
        if next.is_none() || is_empty || next == after {
            let problems = page["problems"].as_array().cloned().unwrap_or_default();
            return Ok((agents, problems));
        }
        after = next;
    }
}

/// The failure of a command about one agent. A name that is not known gets the nearest one that is.
async fn failed(hub: &HubClient, name: &str, error: HubError) -> Failure {
    let next = match &error {
        error if error.is_code("NOT_FOUND") => return unknown(hub, name).await,
        error if error.is_code("IN_FILE") => "change its entry in agents.yaml; the server follows the file".to_owned(),
        error if error.is_code("EXISTS") => {
            format!("{}, or add it under another --name", hub.command("agents update", &format!("{name} FILE")))
        }
        error if error.is_code("BUSY") => {
            let force = hub.command("agents remove", &format!("{name} --force"));
            format!("{force} takes no new tasks for it and lets those end")
        }
        error if error.is_code("VERSION") => hub.command("agents show", name),
        error if error.is_code("UNREACHABLE") => {
            "check the address, and whether the agent runs; --force adds it although it does not answer".to_owned()
        }
        _ => String::new(),
    };
    error.failure_with(hub, &next)
}

async fn unknown(hub: &HubClient, name: &str) -> Failure {
    let known = all(hub).await.map(|(agents, _)| agents).unwrap_or_default();
    let names = known.iter().filter_map(|agent| agent["name"].as_str());
    let next = match nearest(name, names) {
        Some(meant) if meant != name => {
            format!("did you mean {meant}? {} shows all of them", hub.command("agents list", ""))
        }
        // It is there, and not registered.
        Some(_) => "change its entry in agents.yaml; the server follows the file".to_owned(),
        None => hub.command("agents list", ""),
    };
    Failure::by_server("SWITCHBOARD_ERR_NOT_FOUND", format!("there is no agent {}", sanitize::shell_word(name)), next)
}
