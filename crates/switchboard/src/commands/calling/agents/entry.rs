//! An agent of the roster as people read it.

use serde_json::Value;

use crate::commands::calling::{figures, sanitize};

/// The most characters of a list of skills in a table.
const SKILLS: usize = 40;

/// Whether a message to it would arrive, in a word or two.
pub(super) fn state(agent: &Value) -> String {
    let mut state = match agent["kind"].as_str() {
        _ if agent["served"] == false => "not served",
        Some("url") => reachability(agent),
        _ => "served",
    }
    .to_owned();
    match agent["breaker"].as_str() {
        Some("open") => state.push_str(", breaker open"),
        Some("half_open") => state.push_str(", breaker half open"),
        _ => {}
    }
    if agent["held"].is_object() {
        state.push_str(", card held");
    }
    state
}

fn reachability(agent: &Value) -> &'static str {
    let probe = &agent["probe"];
    match (probe["up"] == false, probe["at"].is_null()) {
        (true, _) => "down",
        (false, true) => "not probed yet",
        // It takes a few failures in a row to be down.
        (false, false) if probe["error"].is_string() => "no answer",
        (false, false) => "up",
    }
}

/// The ids of its skills, as far as they fit.
pub(super) fn skills(agent: &Value) -> String {
    let ids = agent["skills"].as_array().into_iter().flatten().filter_map(|skill| skill["id"].as_str());
    let ids: Vec<String> = ids.map(sanitize::line).collect();
    let (mut shown, mut count) = (String::new(), 0);
    for id in &ids {
        let comma = if count == 0 { "" } else { ", " };
        if count > 0 && shown.chars().count() + id.chars().count() > SKILLS {
            return format!("{shown} and {} more", ids.len() - count);
        }
        shown.push_str(comma);
        shown.push_str(id);
        count += 1;
    }
    if shown.is_empty() { "-".to_owned() } else { shown }
}

/// When it was looked at last, and what came of it.
pub(super) fn probe(agent: &Value) -> Option<String> {
    let probe = agent.get("probe")?;
    let Some(at) = probe["at"].as_str() else { return Some("none yet".to_owned()) };
    let result = match probe["error"].as_str() {
        Some(error) => format!("failed: {}", sanitize::line(error)),
        None => format!("answered in {}", figures::duration(&probe["latencyMs"])),
    };
    Some(format!("{at}, {result}"))
}

/// Where it is from.
pub(super) fn source(agent: &Value) -> String {
    match (agent["source"].as_str(), agent["version"].as_u64()) {
        (Some("registration"), Some(version)) => format!("registration, version {version}"),
        (Some("file"), _) if agent["shadowed"] == true => "file; a registration of this name is shadowed".to_owned(),
        _ => figures::text(&agent["source"]),
    }
}
