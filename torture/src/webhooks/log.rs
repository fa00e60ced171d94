//! A task's committed events as a client reads them, and what they add up to.

use serde_json::Value;

use crate::event_stream::Frame;

/// One committed event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its id in the stream, `epoch.seq`.
    pub id: String,
    /// The v1.0 body.
    pub body: Value,
}

/// A task's committed events, in order.
#[derive(Clone, Debug)]
pub struct Log {
    /// The task's id.
    pub task: String,
    /// Everything that is sent on the wire.
    pub events: Vec<Event>,
}

/// An artifact's name and all of its text.
pub type Text = (String, String);

impl Log {
    /// Reads the frames of a stream.
    #[must_use]
    pub fn read(task: &str, frames: Vec<Frame>) -> Self {
        let events = frames.into_iter().map(|frame| {
            let mut data: Value = serde_json::from_str(&frame.data).unwrap_or_default();
            Event { id: frame.id, body: data["result"].take() }
        });
        Self { task: task.to_owned(), events: events.collect() }
    }

    /// What the artifacts say right after an event.
    #[must_use]
    pub fn artifacts_as_of(&self, id: &str) -> Vec<Text> {
        let mut artifacts = Vec::new();
        for event in &self.events {
            if event.is_artifact() {
                grow(&mut artifacts, &event.body["artifactUpdate"]);
            }
            if event.id == id {
                break;
            }
        }
        artifacts
    }
}

impl Event {
    /// Whether it is an artifact update; else it is a status update.
    #[must_use]
    pub fn is_artifact(&self) -> bool {
        self.body["artifactUpdate"].is_object()
    }

    /// The status it changes to.
    #[must_use]
    pub fn status(&self) -> &Value {
        &self.body["statusUpdate"]["status"]
    }

    /// When the status changed, as written: stamps compare as text.
    #[must_use]
    pub fn stamp(&self) -> Option<&str> {
        self.status()["timestamp"].as_str()
    }
}

/// Puts an artifact update behind what is known.
pub fn grow(artifacts: &mut Vec<Text>, update: &Value) {
    let name = update["artifact"]["artifactId"].as_str().unwrap_or_default();
    let text = text_of(&update["artifact"]);
    match artifacts.iter_mut().find(|(known, _)| known == name) {
        Some((_, known)) if update["append"] == true => known.push_str(&text),
        Some((_, known)) => *known = text,
        None => artifacts.push((name.to_owned(), text)),
    }
}

/// All text of an artifact or a message.
#[must_use]
pub fn text_of(holder: &Value) -> String {
    let parts = holder["parts"].as_array().into_iter().flatten();
    parts.filter_map(|part| part["text"].as_str()).collect()
}
