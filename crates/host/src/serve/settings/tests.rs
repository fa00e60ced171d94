//! Which option each limit reaches. The tests of the other crates set their options, not the configuration: a mix-up
//! between the two would show here only. The keys are those of the schema.

#![cfg(feature = "schema")]

use std::fmt::Debug;

use serde_json::Value;
use switchboard_server::Options;

use crate::config::workspace::Workspace;
use crate::config::{Overrides, schema};

use super::*;

/// The keys below a schema's object whose values are counts, sizes or times, each with another value than its default.
fn changes(schema: &Value, object: &Value, path: &str, found: &mut Vec<(String, String)>) {
    let name = |value: &Value| value["$ref"].as_str().and_then(|name| name.rsplit('/').next()).map(str::to_owned);
    for (key, value) in object["properties"].as_object().into_iter().flatten() {
        let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        let kind = name(value).or_else(|| name(&value["items"])).unwrap_or_default();
        let is_limit =
            ["Count", "Size", "TimeSpan", "TimeLimit"].contains(&kind.as_str()) || value["type"] == "integer";
        match is_limit {
            true => found.push((path, other(&value["default"]))),
            false => changes(schema, &schema["$defs"][kind], &path, found),
        }
    }
}

/// One more than a number, `11s` for `10s`, an hour for none.
fn other(default: &Value) -> String {
    match default {
        Value::Number(number) => (number.as_u64().unwrap() + 1).to_string(),
        Value::String(text) => match text.find(|character: char| !character.is_ascii_digit()) {
            Some(0) | None => "1h".to_owned(),
            Some(unit) => format!("{}{}", text[..unit].parse::<u64>().unwrap() + 1, &text[unit..]),
        },
        Value::Array(_) => "[7s]".to_owned(),
        other => panic!("what is {other}?"),
    }
}

/// Every option of every part, as lines of `part.name: value`.
fn options(config: &Config) -> Vec<String> {
    let address = SocketAddr::from(([127, 0, 0, 1], 1));
    let mut lines = Vec::new();
    let mut add = |part: &str, options: &dyn Debug| {
        let shown = format!("{options:#?}");
        let fields = shown.lines().filter_map(|line| line.strip_prefix("    "));
        // A list stands on the lines after its name.
        let mut name = "";
        for field in fields {
            name = field.split_once(": ").filter(|_| !field.starts_with(' ')).map_or(name, |(name, _)| name);
            lines.push(format!("{part}.{name}: {}", field.trim()));
        }
    };
    add("engine", &engine(config));
    add("store", &store(config, address));
    add("egress", &egress(config));
    add("webhooks", &webhooks(config));
    // Only the first server of a process has the metrics.
    add("server", &Options { metrics: None, ..server(config, address, None) });
    // The hub reads its section itself.
    let hub = &config.hub;
    add("hub.fanout", &hub.fanout);
    add("hub.probe", &hub.probe);
    add("hub.breaker", &hub.breaker);
    add("hub.registrations", &hub.registrations);
    add("hub.remotePoll", &hub.remote_poll);
    add("hub.reload", &hub.reload);
    add("hub.messages", &hub.messages);
    add("hub.jobs", &hub.jobs);
    add("hub.channels", &hub.channels);
    add("hub.inbox", &hub.inbox);
    add("hub.ceremonies", &hub.ceremonies);
    add("hub.routes", &hub.routes);
    add("hub.health", &(hub.health.minutes, hub.health.hours, hub.health.callers));
    add("hub.health.alerts", &hub.health.alerts);
    add("hub.projector", &hub.projector);
    lines
}

#[test]
fn the_carriers_of_extensions_reach_the_kernel() {
    let folder = tempfile::tempdir().unwrap();
    let emit = |setting: &str| {
        std::fs::write(folder.path().join("switchboard.yaml"), setting).unwrap();
        engine(&Workspace::settings_only(folder.path(), &Overrides::default()).unwrap().config).emit
    };
    assert_eq!(emit(""), Emit::Newest);
    assert_eq!(emit("hub: { extensions: { emit: all } }"), Emit::All);
    assert_eq!(emit("hub: { extensions: { emit: newest } }"), Emit::Newest);
}

/// One setting at a time is changed in the file that users write; the snapshot names the options that change with it.
#[test]
fn every_limit_reaches_the_option_that_enforces_it() {
    let schema = serde_json::to_value(schema::switchboard()).unwrap();
    let mut found = Vec::new();
    changes(&schema, &schema, "", &mut found);
    assert!(found.len() > 50, "{found:?}");
    let default = options(&Config::default());
    let mut reached = Vec::new();
    for (path, value) in found {
        let keys: Vec<&str> = path.split('.').collect();
        let text = format!("{}: {value}{}", keys.join(": { "), " }".repeat(keys.len() - 1));
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("switchboard.yaml"), &text).unwrap();
        let workspace = Workspace::settings_only(folder.path(), &Overrides::default()).unwrap();
        let changed = options(&workspace.config);
        let mut names: Vec<&str> = changed
            .iter()
            .filter(|line| !default.contains(line))
            .filter_map(|line| line.split_once(": "))
            .map(|(name, _)| name)
            .collect();
        names.dedup();
        reached.push(format!("{path} → {}", names.join(", ")));
    }
    insta::assert_snapshot!(reached.join("\n"));
}
