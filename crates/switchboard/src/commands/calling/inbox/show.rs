//! `switchboard inbox show`: one question, whole, with what it offers and how it was decided.

use std::process::ExitCode;

use serde_json::Value;
use switchboard_host::printer::Printer;

use super::{NamedQuestion, failed};
use crate::cli::HubFlags;
use crate::commands::calling::hub_client::HubClient;
use crate::commands::calling::{figures, run as run_async, sanitize};

/// Of a question, with their names for people.
const MEMBERS: [(&str, &str); 12] = [
    ("id", "id"),
    ("state", "state"),
    ("agent", "agent"),
    ("skill", "skill"),
    ("kind", "kind"),
    ("stage", "stage"),
    ("reviewer", "reviewer"),
    ("mode", "mode"),
    ("radius", "radius"),
    ("openedAt", "asked"),
    ("dueAt", "due"),
    ("onTimeout", "then"),
];

pub(crate) fn run(flags: &HubFlags, options: &NamedQuestion, printer: Printer) -> Result<(), ExitCode> {
    run_async(printer, async {
        let hub = HubClient::open(flags).await?;
        let shown = hub.call(http::Method::GET, hub.url(&["api", "inbox", &options.id]), None).await;
        let question = shown.map_err(|error| failed(&hub, &options.id, error))?;
        if printer.is_json() {
            printer.json(&question);
            return Ok(());
        }
        let is_said = |(member, _): &&(&str, &str)| question[*member].is_string();
        let named = MEMBERS.iter().filter(is_said);
        let mut rows: Vec<[String; 2]> =
            named.map(|(member, name)| [(*name).to_owned(), figures::text(&question[*member])]).collect();
        let by = |of: &Value, member: &str| {
            let name = of[format!("{member}Name")].as_str().or(of[member].as_str());
            name.map_or("nobody: its time was over".to_owned(), sanitize::line)
        };
        rows.push(["owner".to_owned(), by(&question, "owner")]);
        for option in question["options"].as_array().into_iter().flatten() {
            let (id, label) = (figures::text(&option["id"]), figures::text(&option["label"]));
            let shown = if id == label { id } else { format!("{id} ({label})") };
            rows.push(["option".to_owned(), shown]);
        }
        let decided = &question["decided"];
        if decided.is_object() {
            let how = format!("{} at {}", figures::text(&decided["decision"]), figures::text(&decided["at"]));
            rows.push(["decided".to_owned(), how]);
            rows.push(["by".to_owned(), by(decided, "by")]);
            rows.push(["words".to_owned(), figures::text(&decided["text"])]);
        }
        printer.table(&rows);
        let texts =
            question["question"]["parts"].as_array().into_iter().flatten().filter_map(|part| part["text"].as_str());
        let text: Vec<&str> = texts.collect();
        if !text.is_empty() {
            printer.line("");
            for line in text.join("\n").lines() {
                printer.line(sanitize::line(line));
            }
        }
        Ok(())
    })
}
