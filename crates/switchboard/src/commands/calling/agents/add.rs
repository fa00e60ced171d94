//! `switchboard agents add`: registers agents elsewhere with the running server.

use std::process::ExitCode;

use http::Method;
use serde_json::{Map, Value, json};
use switchboard_host::config::agent_name::AgentName;
use switchboard_host::config::value::Scalar;
use switchboard_host::printer::Printer;

use super::{entry, failed, file, probe, show};
use crate::cli::HubFlags;
use crate::commands::calling::hub_client::HubClient;
use crate::commands::calling::{Failure, is_url, run as run_async, sanitize};

/// The longest name of an agent.
const LONGEST: usize = 63;

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct AddOptions {
    /// Address of the agent, or a file with items of agents.yaml; - reads standard input
    #[arg(value_name = "URL|FILE")]
    agent: String,

    /// Name of the agent here; without it the one on its card, in small letters
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// Add it even if it does not answer now
    #[arg(long)]
    force: bool,
}

pub(crate) fn run(flags: &HubFlags, options: &AddOptions, printer: Printer) -> Result<(), ExitCode> {
    run_async(printer, async {
        let hub = HubClient::open(flags).await?;
        let mut added: Vec<Value> = Vec::new();
        for item in items(&hub, options).await? {
            let result = add(&hub, item, options.force).await;
            match result {
                Ok(agent) => {
                    print(&hub, &agent, printer).await;
                    added.push(agent);
                }
                Err(failure) => {
                    // Those before it are there, and a program must know.
                    if printer.is_json() && !added.is_empty() {
                        printer.json_line(&json!({ "added": added }));
                    }
                    return Err(failure);
                }
            }
        }
        if printer.is_json() {
            printer.json(&json!({ "added": added }));
        }
        Ok(())
    })
}

async fn items(hub: &HubClient, options: &AddOptions) -> Result<Vec<Map<String, Value>>, Failure> {
    let AddOptions { agent, name, force } = options;
    if !is_url(agent) && !agent.contains("://") {
        let mut items = file::items(agent)?;
        match (name, items.as_mut_slice()) {
            (None, _) => {}
            (Some(name), [item]) => drop(item.insert("name".to_owned(), name.as_str().into())),
            (Some(_), _) => {
                return Err(Failure::usage("--name is for one agent", "leave it out, or name a file with one"));
            }
        }
        return Ok(items);
    }
    let name = match name {
        Some(name) => name.clone(),
        None => {
            let found = probe::look(hub, agent).await?;
            if found["reachable"] != true {
                let failure = probe::unreachable(&found, agent);
                return Err(if *force {
                    failure.with_hint("write --name: its card has none to offer")
                } else {
                    failure
                });
            }
            name_of(found["name"].as_str().unwrap_or_default())?
        }
    };
    let item = [("name".to_owned(), Value::from(name)), ("url".to_owned(), agent.as_str().into())];
    Ok(vec![item.into_iter().collect()])
}

/// A name as an address has it, made of the one on a card.
fn name_of(card: &str) -> Result<String, Failure> {
    let letter = |letter: char| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '-' };
    let name: String = card.chars().map(letter).collect();
    let words: Vec<&str> = name.split('-').filter(|word| !word.is_empty()).collect();
    let name: String = words.join("-").chars().take(LONGEST).collect();
    let name = name.trim_end_matches('-');
    AgentName::from_text(name).map(|name| name.to_string()).map_err(|_| {
        let problem = format!("the card's name, {:?}, cannot be an agent's name here", sanitize::line(card));
        Failure::usage(problem, "write --name, with lowercase letters, digits and -")
    })
}

async fn add(hub: &HubClient, item: Map<String, Value>, force: bool) -> Result<Value, Failure> {
    let mut url = hub.url(&["api", "agents"]);
    if force {
        url.query_pairs_mut().append_pair("force", "true");
    }
    let name = item.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
    match hub.call(Method::POST, url, Some(&Value::Object(item))).await {
        Ok(mut agent) => {
            agent["address"] = hub.agent_address(agent["name"].as_str().unwrap_or_default()).into();
            Ok(agent)
        }
        Err(error) => Err(failed(hub, &name, error).await),
    }
}

async fn print(hub: &HubClient, added: &Value, printer: Printer) {
    if printer.is_json() {
        return;
    }
    let name = added["name"].as_str().unwrap_or_default();
    printer.line(format!("added {name}, version {}: {}", added["version"], hub.agent_address(name)));
    if let Ok(agent) = show::read(hub, name).await
        && agent["skills"].as_array().is_some_and(|skills| !skills.is_empty())
    {
        printer.line(format!("skills: {}", entry::skills(&agent)));
    }
}

#[cfg(test)]
mod tests {
    use super::name_of;

    #[test]
    fn the_name_on_a_card_becomes_one_of_an_address() {
        for (card, name) in [("Echo", "echo"), ("  Code Review (v2)! ", "code-review-v2"), ("--a__b--", "a-b")] {
            assert_eq!(name_of(card).ok().as_deref(), Some(name));
        }
        assert!(name_of("日本語").is_err() && name_of("tasks").is_err());
        assert_eq!(name_of(&"a".repeat(80)).unwrap_or_default().len(), 63);
    }
}
