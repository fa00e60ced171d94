//! `switchboard ceremonies update`: changes members of a registered ceremony. Only what is typed is sent, so what is not, such as
//! `enabled`, stays as it is.

use std::process::ExitCode;

use http::Method;
use serde_json::{Map, Value};
use switchboard_host::printer::Printer;

use super::{due, failed};
use crate::cli::HubFlags;
use crate::commands::calling::hub_client::HubClient;
use crate::commands::calling::{Failure, figures, run as run_async, sanitize};

/// Members whose values are texts, whatever they look like.
const TEXTS: [&str; 9] =
    ["name", "description", "schedule", "at", "timezone", "skill", "content", "notifyChannel", "timeout"];

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct UpdateOptions {
    /// Id of the ceremony, as the list shows it
    id: String,

    /// What changes: enabled=false, schedule='0 8 * * *', content=null
    #[arg(required = true, value_name = "KEY=VALUE")]
    changes: Vec<String>,
}

pub(crate) fn run(flags: &HubFlags, options: &UpdateOptions, printer: Printer) -> Result<(), ExitCode> {
    let UpdateOptions { id, changes } = options;
    run_async(printer, async {
        let patch = Value::Object(patch(changes)?);
        let hub = HubClient::open(flags).await?;
        let url = hub.url(&["api", "ceremonies", id, "update"]);
        let updated = match hub.call(Method::POST, url, Some(&patch)).await {
            Ok(updated) => updated,
            Err(error) => return Err(failed(&hub, id, error).await),
        };
        match printer.is_json() {
            true => printer.json(&updated),
            false => printer.line(format!(
                "ceremony {} has version {} now, and is {}",
                figures::text(&updated["id"]),
                updated["version"],
                due(&updated)
            )),
        }
        Ok(())
    })
}

fn patch(changes: &[String]) -> Result<Map<String, Value>, Failure> {
    let mut patch = Map::new();
    for change in changes {
        let Some((key, text)) = change.split_once('=').filter(|(key, _)| !key.is_empty()) else {
            let problem = format!("{:?} is no KEY=VALUE", sanitize::line(change));
            return Err(Failure::usage(problem, "write what changes as enabled=false"));
        };
        let is_text = TEXTS.contains(&key) && text != "null";
        let parsed = if is_text { None } else { serde_json::from_str(text).ok() };
        patch.insert(key.to_owned(), parsed.unwrap_or_else(|| text.into()));
    }
    Ok(patch)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_json_where_they_can_be_and_texts_stay_texts() {
        let typed =
            ["enabled=false", "name=7", "content=null", "targets=[\"a\",\"b\"]", "fanout=first", "schedule=0 9 * * *"];
        let patch = patch(&typed.map(str::to_owned)).unwrap_or_default();
        let right = json!({
            "enabled": false, "name": "7", "content": null, "targets": ["a", "b"], "fanout": "first",
            "schedule": "0 9 * * *",
        });
        assert_eq!(Value::Object(patch), right);
        assert!(super::patch(&["enabled".to_owned()]).is_err() && super::patch(&["=x".to_owned()]).is_err());
    }
}
