//! `switchboard inbox list`: open questions, the oldest first, or what was decided, the newest first.

use std::process::ExitCode;

use serde_json::{Value, json};
use switchboard_host::printer::Printer;

use crate::cli::HubFlags;
use crate::commands::calling::hub_client::HubClient;
use crate::commands::calling::{Failure, figures, run as run_async};

/// Questions that are listed if no other number is typed.
const SHOWN: usize = 50;
/// The most that a page has.
const PAGE: usize = 100;

#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct ListOptions {
    /// Show what was decided, the newest first
    #[arg(long, conflicts_with_all = ["stage", "kind"])]
    decided: bool,

    /// Only open questions of this stage
    #[arg(long, value_parser = ["caller", "operator", "escalated"])]
    stage: Option<String>,

    /// Only questions of this kind
    #[arg(long, value_parser = ["question", "auth", "gate"])]
    kind: Option<String>,

    /// Only questions of this agent
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,

    /// How many [default: 50]
    #[arg(long, value_name = "COUNT")]
    limit: Option<usize>,
}

pub(crate) fn run(flags: &HubFlags, options: &ListOptions, printer: Printer) -> Result<(), ExitCode> {
    run_async(printer, async {
        let hub = HubClient::open(flags).await?;
        let (questions, is_all) = read(&hub, options).await?;
        if printer.is_json() {
            printer.json(&json!({ "questions": questions }));
            return Ok(());
        }
        if questions.is_empty() {
            printer.line(if options.decided { "nothing was decided" } else { "nothing waits for an answer" });
            return Ok(());
        }
        if options.decided {
            let row = |question: &Value| {
                let decided = &question["decided"];
                let by = decided["byName"].as_str().or(decided["by"].as_str()).unwrap_or("time");
                [
                    figures::text(&decided["at"]),
                    figures::text(&decided["decision"]),
                    figures::text(&json!(by)),
                    figures::text(&question["agent"]),
                    figures::text(&question["id"]),
                    figures::text(&question["title"]),
                ]
            };
            printer.titled_table(["DECIDED", "DECISION", "BY", "AGENT", "ID", "QUESTION"], questions.iter().map(row));
        } else {
            let row = |question: &Value| {
                ["openedAt", "kind", "stage", "agent", "id", "title"].map(|member| figures::text(&question[member]))
            };
            printer.titled_table(["ASKED", "KIND", "STAGE", "AGENT", "ID", "QUESTION"], questions.iter().map(row));
        }
        if !is_all {
            printer.note("there are more: --limit shows more of them");
        }
        Ok(())
    })
}

/// So many questions as are wanted, and whether these are all.
async fn read(hub: &HubClient, options: &ListOptions) -> Result<(Vec<Value>, bool), Failure> {
    let wanted = options.limit.unwrap_or(SHOWN).max(1);
    let (mut questions, mut after): (Vec<Value>, Option<String>) = (Vec::new(), None);
    loop {
        let mut url = hub.url(&["api", "inbox"]);
        let size = PAGE.min(wanted - questions.len()).to_string();
        let state = options.decided.then_some("decided");
        let parameters = [
            ("pageSize", Some(size.as_str())),
            ("state", state),
            ("stage", options.stage.as_deref()),
            ("kind", options.kind.as_deref()),
            ("agent", options.agent.as_deref()),
            ("after", after.as_deref()),
        ];
        for (name, value) in parameters {
            if let Some(value) = value {
                url.query_pairs_mut().append_pair(name, value);
            }
        }
        let mut page = hub.get(url).await?;
        if let Value::Array(items) = page["items"].take() {
            questions.extend(items);
        }
        let next = page["next"].as_str().map(str::to_owned);
        // A page that leads nowhere is the last one.
        if next.is_none() || next == after {
            return Ok((questions, true));
        }
        if questions.len() >= wanted {
            return Ok((questions, false));
        }
        after = next;
    }
}
