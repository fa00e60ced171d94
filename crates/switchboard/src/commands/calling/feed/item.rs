//! An item of the feed, as a line.

use serde_json::Value;
use switchboard_a2a::Timestamp;
use switchboard_host::printer::Printer;

use crate::commands::calling::{figures, sanitize};

/// The most characters of what an item says.
const WORDS: usize = 100;
/// The columns that most topics fit into.
const TOPIC: usize = 28;

/// Prints items one after the other.
pub(super) struct ItemPrinter {
    printer: Printer,
    /// The time of the last item that has one: an artifact has none, and comes right after what has.
    time: String,
}

impl ItemPrinter {
    pub(super) fn new(printer: Printer) -> Self {
        Self { printer, time: String::new() }
    }

    /// Prints one: as a line of JSON as it came, or when, what, which task, and what is said.
    pub(super) fn print(&mut self, item: &Value) {
        if self.printer.is_json() {
            return self.printer.json_line(item);
        }
        if item["topic"] == "gap" {
            let gap = "items are missing here: they are older than what is kept, or not for this key";
            return self.printer.note(gap);
        }
        if let Some(time) = item["timestamp"].as_i64() {
            self.time = Timestamp(time).to_string();
        }
        let (time, topic) = (&self.time, figures::text(&item["topic"]));
        let task = item["source"]["taskId"].as_str().map(|task| sanitize::line(task) + "  ").unwrap_or_default();
        let line = format!("{time:24}  {topic:TOPIC$}  {task}{}", words(item));
        self.printer.line(line.trim_end());
    }
}

/// What it says, as far as it fits on a line.
fn words(item: &Value) -> String {
    let payload = &item["payload"];
    let said = match item["topic"].as_str().unwrap_or_default() {
        topic if topic.starts_with("outcome.") => outcome(payload),
        topic => parts(payload).unwrap_or_else(|| members(payload, topic)),
    };
    let said = sanitize::line(&said);
    match said.char_indices().nth(WORDS) {
        Some((end, _)) => format!("{}…", &said[..end]),
        None => said,
    }
}

/// The texts of a message, status or artifact; none if it is something else.
fn parts(payload: &Value) -> Option<String> {
    let parts = match (payload.get("message"), payload.get("statusUpdate"), payload.get("artifactUpdate")) {
        (Some(message), ..) => &message["parts"],
        (None, Some(update), _) => &update["status"]["message"]["parts"],
        (None, None, Some(update)) => &update["artifact"]["parts"],
        (None, None, None) => return None,
    };
    let texts = parts.as_array().into_iter().flatten().filter_map(|part| part["text"].as_str());
    Some(texts.collect::<Vec<_>>().join(" "))
}

fn outcome(outcome: &Value) -> String {
    let state = figures::text(&outcome["state"]).replace('_', " ");
    let unsaid = if outcome["success"] == false && state == "completed" { ", without success" } else { "" };
    let cost = match outcome["costUsd"].as_f64() {
        Some(cost) if cost > 0.0 => format!(", {}", figures::dollars(&outcome["costUsd"])),
        _ => String::new(),
    };
    format!("{state}{unsaid} after {}{cost}", figures::duration(&outcome["durationMs"]))
}

/// The members of a journal line that say something which the topic does not.
fn members(payload: &Value, topic: &str) -> String {
    let Some(members) = payload.as_object() else { return String::new() };
    let is_in_topic = |value: &Value| value.as_str().is_some_and(|text| topic.split('.').any(|word| word == text));
    let is_empty = |value: &Value| value.is_null() || value.as_object().is_some_and(serde_json::Map::is_empty);
    let is_repeated = |name: &str, value: &Value| name == "agent" && members.get("subject") == Some(value);
    let is_said = |name: &str, value: &Value| !is_empty(value) && !is_in_topic(value) && !is_repeated(name, value);
    let said = members.iter().filter(|(name, value)| is_said(name, value)).map(|(name, value)| match value.as_str() {
        Some(text) => format!("{name}={text}"),
        None => format!("{name}={value}"),
    });
    said.collect::<Vec<_>>().join(" ")
}
