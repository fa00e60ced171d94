//! The names that an earlier hub had for settings in the environment: `WORKSTACEAN_…`. Each is read where neither today's
//! variable nor the file says otherwise, with a warning that says today's key.

use std::collections::BTreeMap;

use crate::config::document::{Content, Entry, Node};
use crate::config::problem::Origin;
use crate::config::section::variable_name;

const PREFIX: &str = "WORKSTACEAN_";
/// Before the name of a skill: milliseconds in which its work is not done again.
const COOLDOWN: &str = "WORKSTACEAN_COOLDOWN_MS_";
const COOLDOWNS: &str = "hub.routing.cooldowns";
/// Keys of callers, which files may name as credentials.
const API_KEY: &str = "WORKSTACEAN_API_KEY";

/// How a value becomes one of today's.
#[derive(Clone, Copy)]
enum Form {
    AsItIs,
    Milliseconds,
    /// A port of this machine.
    Port,
}

const NAMES: [(&str, &str, Form); 9] = [
    ("WORKSTACEAN_HTTP_PORT", "server.bind", Form::Port),
    ("WORKSTACEAN_PUBLIC_BASE_URL", "server.publicBaseUrl", Form::AsItIs),
    ("WORKSTACEAN_BASE_URL", "server.publicBaseUrl", Form::AsItIs),
    ("WORKSTACEAN_INTERNAL_BASE_URL", "server.internalBaseUrl", Form::AsItIs),
    ("WORKSTACEAN_DISPATCH_DROP_WINDOW_MS", "hub.health.alerts.dropWindow", Form::Milliseconds),
    ("WORKSTACEAN_DISPATCH_DROP_THRESHOLD", "hub.health.alerts.drops", Form::AsItIs),
    ("WORKSTACEAN_FLEET_ALERT_COOLDOWN_MS", "hub.health.alerts.cooldown", Form::Milliseconds),
    ("WORKSTACEAN_FLEET_DAILY_BUDGET_USD", "hub.health.alerts.dailyUsd", Form::AsItIs),
    ("WORKSTACEAN_FLEET_FAILURE_RATE_THRESHOLD", "hub.health.alerts.failureRate", Form::AsItIs),
];

/// What a variable of an earlier name sets a key to.
pub(super) fn found(key: &str, environment: &BTreeMap<String, String>) -> Option<(Content, Origin)> {
    if key == COOLDOWNS {
        return cooldowns(environment);
    }
    let named = NAMES.iter().filter(|(_, today, _)| *today == key);
    let set = |(variable, _, form): &(&'static str, &str, Form)| {
        let value = environment.get(*variable).filter(|value| !value.is_empty())?;
        Some((Content::Text(form.today(value)), origin(variable)))
    };
    named.filter_map(set).next()
}

/// A warning for each variable of an earlier name.
pub(super) fn warnings(environment: &BTreeMap<String, String>) -> Vec<String> {
    let set = environment.iter().filter(|(name, value)| name.starts_with(PREFIX) && !value.is_empty());
    set.filter_map(|(name, _)| warning(name, environment)).collect()
}

fn warning(name: &str, environment: &BTreeMap<String, String>) -> Option<String> {
    if name == API_KEY {
        return Some(format!(
            "the environment variable {name} is not read: keys are made with switchboard keys create"
        ));
    }
    if name.starts_with(API_KEY) {
        return None;
    }
    let today = match NAMES.iter().find(|(variable, ..)| *variable == name) {
        Some((_, today, _)) => *today,
        None if name.starts_with(COOLDOWN) => COOLDOWNS,
        None => return Some(format!("the environment variable {name} sets nothing: no setting has that name")),
    };
    if today == COOLDOWNS {
        return Some(format!("the environment variable {name} has an earlier name: set {today} instead"));
    }
    let variable = variable_name(today);
    let is_replaced = environment.get(&variable).is_some_and(|value| !value.is_empty());
    Some(match is_replaced {
        true => format!("the environment variable {name} sets nothing beside {variable}: remove it"),
        false => format!("the environment variable {name} has an earlier name: set {today} instead, or {variable}"),
    })
}

/// By skill; an earlier name has it in capitals.
fn cooldowns(environment: &BTreeMap<String, String>) -> Option<(Content, Origin)> {
    let entries: Vec<Entry> = environment
        .iter()
        .filter(|(_, value)| !value.is_empty())
        .filter_map(|(name, value)| {
            let (skill, origin) = (name.strip_prefix(COOLDOWN)?.to_ascii_lowercase(), origin(name));
            let content = Content::Text(Form::Milliseconds.today(value));
            Some(Entry { key: skill, origin: origin.clone(), value: Node { origin, content } })
        })
        .collect();
    let first = entries.first()?.origin.clone();
    Some((Content::Mapping(entries), first))
}

fn origin(variable: &str) -> Origin {
    Origin::Environment { variable: variable.to_owned() }
}

impl Form {
    fn today(self, value: &str) -> String {
        let is_number = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
        match self {
            Self::Milliseconds if is_number => format!("{value}ms"),
            Self::Port if is_number => format!("127.0.0.1:{value}"),
            // What is no number is refused as it was written.
            _ => value.to_owned(),
        }
    }
}
