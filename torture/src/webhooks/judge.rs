//! Holds what one webhook received against its task's committed log: everything it asked for at least once and in order,
//! nothing that was not committed, and every repetition the same.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::webhooks::log::{Event, Log, Text, grow, text_of};

/// The protocol version a webhook was set in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// Told of every status and artifact update, as a stream carries them.
    V1,
    /// Told of every status change, with the whole task.
    V03,
}

/// With which event a webhook begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Start {
    /// It came with the message that made the task: the first.
    First,
    /// It was set later: one of them, and none after the first status younger than the floor, which was seen after the
    /// setting was acknowledged. Without a floor it was not acknowledged.
    Later {
        /// The stamp of that status.
        floor: Option<String>,
    },
}

/// What happened at the receiver, for one webhook, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A whole request came.
    Arrived {
        /// Its `webhook-id`.
        id: String,
        /// Its body.
        body: String,
    },
    /// A request is about to be answered with a 2xx.
    Accepted {
        /// Its `webhook-id`.
        id: String,
    },
}

/// How much was compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Committed events that were asked for.
    pub events: usize,
    /// Deliveries, each counted once.
    pub deliveries: usize,
    /// Requests that came, repetitions included.
    pub requests: usize,
    /// Requests that came though they had been accepted before: the server ended before it could write that down.
    pub after_acceptance: usize,
    /// Events that came joined to the one before.
    pub merged: usize,
}

impl Tally {
    /// Adds another one.
    pub fn add(&mut self, other: Self) {
        self.events += other.events;
        self.deliveries += other.deliveries;
        self.requests += other.requests;
        self.after_acceptance += other.after_acceptance;
        self.merged += other.merged;
    }
}

/// Compares; what does not hold, one line each.
#[must_use]
pub fn judge(log: &Log, version: Version, start: &Start, entries: &[Entry]) -> (Tally, Vec<String>) {
    let mut problems = Vec::new();
    let arrived = arrivals(entries, &mut problems);
    let wanted: Vec<&Event> =
        log.events.iter().filter(|event| version == Version::V1 || !event.is_artifact()).collect();
    let mut reader = Reader { log, version, wanted: &wanted, next: matches!(start, Start::First).then_some(0) };
    let mut begun = reader.next;
    let mut merged = 0;
    for (id, body) in &arrived {
        match reader.read(id, body) {
            Ok(covered) => {
                begun = begun.or(Some(covered.start));
                merged += covered.len() - 1;
            }
            Err(problem) => problems.push(format!("{id}: {problem}")),
        }
    }
    let due = match start {
        Start::Later { floor: Some(floor) } => {
            wanted.iter().position(|event| event.stamp().is_some_and(|stamp| stamp > floor.as_str()))
        }
        // From the first on, or not known.
        Start::First | Start::Later { floor: None } => None,
    };
    if let (Some(begun), Some(due)) = (begun, due)
        && begun > due
    {
        problems.push(format!("begins with {} though {} came after it was set", wanted[begun].id, wanted[due].id));
    }
    let told = reader.next.unwrap_or(0);
    if told < wanted.len() {
        let missing: Vec<&str> = wanted[told..].iter().map(|event| event.id.as_str()).collect();
        problems.push(format!("was never told of {}", missing.join(", ")));
    }
    let events = wanted.len() - begun.unwrap_or(0);
    let (requests, after_acceptance) = requests(entries);
    (Tally { events, deliveries: arrived.len(), requests, after_acceptance, merged }, problems)
}

/// How many requests came, and how many of them after they had been accepted.
fn requests(entries: &[Entry]) -> (usize, usize) {
    let mut accepted: BTreeSet<&str> = BTreeSet::new();
    let (mut all, mut after_acceptance) = (0, 0);
    for entry in entries {
        match entry {
            Entry::Accepted { id } => drop(accepted.insert(id)),
            Entry::Arrived { id, .. } => {
                all += 1;
                after_acceptance += usize::from(accepted.contains(id.as_str()));
            }
        }
    }
    (all, after_acceptance)
}

/// Each delivery once, by its first arrival. None may come before the one before it was accepted.
fn arrivals<'a>(entries: &'a [Entry], problems: &mut Vec<String>) -> Vec<(&'a str, &'a str)> {
    let mut order: Vec<(&str, &str)> = Vec::new();
    let mut bodies: BTreeMap<&str, &str> = BTreeMap::new();
    let mut accepted: BTreeSet<&str> = BTreeSet::new();
    for entry in entries {
        match entry {
            Entry::Accepted { id } => {
                accepted.insert(id);
            }
            Entry::Arrived { id, body } => match bodies.get(id.as_str()) {
                Some(first) if first == body => {}
                Some(first) => problems.push(format!("{id} came as {first} and as {body}")),
                None => {
                    if let Some((before, _)) = order.last().filter(|(before, _)| !accepted.contains(before)) {
                        problems.push(format!("{id} was sent before {before} was accepted"));
                    }
                    bodies.insert(id, body);
                    order.push((id, body));
                }
            },
        }
    }
    for (id, _) in order.iter().filter(|(id, _)| !accepted.contains(id)) {
        problems.push(format!("{id} was given up before it was accepted"));
    }
    order
}

/// Follows the log as deliveries come.
struct Reader<'a> {
    log: &'a Log,
    version: Version,
    wanted: &'a [&'a Event],
    /// The place of the next event; none before the first delivery of a webhook that was set later.
    next: Option<usize>,
}

impl Reader<'_> {
    /// Which events a delivery tells of, if it is right.
    fn read(&mut self, id: &str, body: &str) -> Result<std::ops::Range<usize>, String> {
        let Some(cursor) = id.strip_prefix(&format!("{}:", self.log.task)).and_then(|rest| rest.rsplit(':').next())
        else {
            return Err(format!("is not a delivery of task {}", self.log.task));
        };
        let Some(last) = self.wanted.iter().position(|event| event.id == cursor) else {
            return Err(format!("tells of an event that was never committed, or was not asked for: {body}"));
        };
        let body: Value = serde_json::from_str(body).map_err(|error| format!("is not JSON: {error}"))?;
        let first = match self.next {
            Some(next) if last < next => return Err("comes after a later one".to_owned()),
            Some(next) => next,
            None => self.beginning(last, &body),
        };
        let is_late = self.next.is_none();
        // Whatever is wrong with it, what follows is compared with what follows.
        self.next = Some(last + 1);
        self.compare(first, last, &body, is_late)?;
        Ok(first..last + 1)
    }

    fn compare(&self, first: usize, last: usize, body: &Value, is_late: bool) -> Result<(), String> {
        let covered = &self.wanted[first..=last];
        let event = self.wanted[last];
        let update = &body["artifactUpdate"];
        if self.version == Version::V1 && update.is_object() {
            return artifact(covered, body);
        }
        if let [skipped, _, ..] = covered {
            return Err(format!("skips {}", skipped.id));
        }
        match self.version {
            Version::V03 => self.task(event, body, "kind"),
            // Who comes late is told the whole task first.
            Version::V1 if is_late && body["task"].is_object() => self.task(event, &body["task"], "task"),
            Version::V1 if *body == event.body => Ok(()),
            Version::V1 => Err(format!("says {body} where {} was committed", event.body)),
        }
    }

    /// The task as it was right after an event.
    fn task(&self, event: &Event, task: &Value, form: &str) -> Result<(), String> {
        if form == "kind" && task["kind"] != "task" {
            return Err(format!("is no task of version 0.3: {task}"));
        }
        let state = event.status()["state"].as_str().unwrap_or_default();
        let state = if form == "kind" { older_name(state) } else { state.to_owned() };
        let found = task["artifacts"].as_array().into_iter().flatten();
        let found =
            found.map(|artifact| (artifact["artifactId"].as_str().unwrap_or_default().to_owned(), text_of(artifact)));
        let found: Vec<Text> = found.collect();
        let told = (task["id"].as_str(), task["status"]["state"].as_str(), task["status"]["timestamp"].as_str(), found);
        let artifacts = self.log.artifacts_as_of(&event.id);
        let right = (Some(self.log.task.as_str()), Some(state.as_str()), event.stamp(), artifacts);
        if told == right { Ok(()) } else { Err(format!("says {told:?} where {right:?} was committed")) }
    }

    /// Where the first delivery of a webhook that was set later begins: joined chunks begin where their text does.
    fn beginning(&self, last: usize, body: &Value) -> usize {
        let is_artifact = |place: &usize| self.wanted[*place].is_artifact();
        let earliest = (0..=last).rev().take_while(is_artifact).last().unwrap_or(last);
        let fits = |first: &usize| artifact(&self.wanted[*first..=last], body).is_ok();
        (earliest..=last).rev().find(fits).unwrap_or(last)
    }
}

/// Whether an artifact update is what the covered ones add up to.
fn artifact(covered: &[&Event], body: &Value) -> Result<(), String> {
    if let [event] = covered {
        let same = *body == event.body;
        return if same { Ok(()) } else { Err(format!("says {body} where {} was committed", event.body)) };
    }
    let (mut right, mut told) = (Vec::new(), Vec::new());
    for event in covered {
        if !event.is_artifact() {
            return Err(format!("skips {}", event.id));
        }
        grow(&mut right, &event.body["artifactUpdate"]);
    }
    let update = &body["artifactUpdate"];
    grow(&mut told, update);
    let committed =
        |event: Option<&&Event>, field: &str| event.is_some_and(|event| event.body["artifactUpdate"][field] == true);
    let replaced = covered.iter().any(|event| !committed(Some(event), "append"));
    let flags = (update["append"] == true, update["lastChunk"] == true);
    if told == right && flags == (!replaced, committed(covered.last(), "lastChunk")) {
        return Ok(());
    }
    Err(format!("says {told:?} {flags:?} where {right:?} was committed"))
}

/// `TASK_STATE_INPUT_REQUIRED` is `input-required` in version 0.3.
fn older_name(state: &str) -> String {
    state.trim_start_matches("TASK_STATE_").to_lowercase().replace('_', "-")
}
