//! Lines that no honest Codex writes. None may make a dialogue panic, and none may make it forget to end.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use switchboard_cli_agents::adapters::{Decision, Dialogue, Ending, Exit, Step, Steps};

use super::{app_server, exec};

/// Every line of output in every recording of Codex.
fn lines() -> Vec<String> {
    let folder = format!("{}/tests/captures", env!("CARGO_MANIFEST_DIR"));
    let mut lines = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if name.starts_with("codex-") && !name.contains("100kB") {
            let text = std::fs::read_to_string(path).unwrap();
            lines.extend(text.lines().filter_map(|line| line.strip_prefix("<< ")).map(str::to_owned));
        }
    }
    assert!(lines.len() > 300, "{}", lines.len());
    lines
}

/// Feeds lines until the dialogue ends, then begins another; at last ends it.
fn survives(new: fn() -> Box<dyn Dialogue>, lines: impl Iterator<Item = String>) {
    let (mut dialogue, mut steps) = (new(), Steps::default());
    for line in lines {
        dialogue.line(&line, &mut steps);
        for step in steps.take() {
            match step {
                Step::Event(switchboard_cli_agents::adapters::Event::ApprovalRequired(approval)) => {
                    dialogue.decide(&approval.request, &Decision::Allow, &mut steps);
                }
                Step::Finish(_) => dialogue = new(),
                _ => {}
            }
        }
    }
    dialogue.interrupt(&mut steps);
    dialogue.ended(&Exit::default(), &mut steps);
    let ends = |step: &Step| matches!(step, Step::Finish(Ending::Failed(_)));
    assert_eq!(steps.take().iter().filter(|step| ends(step)).count(), 1);
}

/// Numbers that look random and are the same in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % most.max(1)
    }
}

#[test]
fn lines_that_are_cut_short() {
    let mut numbers = Numbers(1);
    let mut cut = Vec::new();
    for line in lines() {
        for _ in 0..6 {
            let at = (0..=numbers.below(line.len())).rev().find(|at| line.is_char_boundary(*at)).unwrap();
            cut.push(line[..at].to_owned());
        }
    }
    survives(exec, cut.clone().into_iter());
    survives(app_server, cut.into_iter());
}

#[test]
fn members_of_the_wrong_kind() {
    let odd = [
        json!(null),
        json!(true),
        json!(-1),
        json!(1e308),
        json!(u64::MAX),
        json!("\u{0}ü"),
        json!([]),
        json!([[{}]]),
        json!({}),
        json!({ "type": 3 }),
    ];
    let mut changed = Vec::new();
    let mut seen = BTreeSet::new();
    for (number, line) in lines().iter().enumerate() {
        let message: Value = serde_json::from_str(line).unwrap();
        // One of each shape is enough.
        let item = message.pointer("/params/item").or_else(|| message.get("item")).unwrap_or(&Value::Null);
        let shape = (message["method"].to_string(), message["type"].to_string(), item["type"].to_string());
        if message.get("result").is_none() && !seen.insert((shape, item["status"].to_string())) {
            continue;
        }
        let mut paths = Vec::new();
        places(&message, &mut String::new(), &mut paths);
        for (place, path) in paths.iter().enumerate() {
            let mut message = message.clone();
            *message.pointer_mut(path).unwrap() = odd[(number + place) % odd.len()].clone();
            changed.push(message.to_string());
        }
    }
    survives(exec, changed.clone().into_iter());
    survives(app_server, changed.into_iter());
}

/// The place of every member, as JSON pointers.
fn places(value: &Value, path: &mut String, found: &mut Vec<String>) {
    found.push(path.clone());
    let members: Vec<(String, &Value)> = match value {
        Value::Object(object) => object.iter().map(|(name, value)| (name.clone(), value)).collect(),
        Value::Array(list) => list.iter().enumerate().map(|(at, value)| (at.to_string(), value)).collect(),
        _ => Vec::new(),
    };
    for (name, value) in members {
        let length = path.len();
        path.push('/');
        path.push_str(&name.replace('~', "~0").replace('/', "~1"));
        places(value, path, found);
        path.truncate(length);
    }
}

#[test]
fn noise_deep_nesting_and_floods_of_items() {
    let mut numbers = Numbers(2);
    let mut noise: Vec<String> = (0..2000)
        .map(|_| (0..numbers.below(60)).map(|_| char::from(u8::try_from(numbers.below(256)).unwrap())).collect())
        .collect();
    noise.push("[".repeat(100_000));
    noise.push(format!("{{\"type\":{}", "{\"a\":".repeat(100_000)));
    for id in 0..3000 {
        let item = json!({ "id": format!("i{id}"), "type": "commandExecution", "command": "x" });
        noise.push(json!({ "type": "item.started", "item": item }).to_string());
        noise.push(json!({ "method": "item/started", "params": { "item": item } }).to_string());
        let delta = json!({ "itemId": format!("m{id}"), "delta": "x" });
        noise.push(json!({ "method": "item/agentMessage/delta", "params": delta }).to_string());
    }
    survives(exec, noise.clone().into_iter());
    survives(app_server, noise.into_iter());
}
