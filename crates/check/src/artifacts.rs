//! Artifacts as a stream builds them up, to be compared with those of the stored task. Only contents count: where one
//! text part ends and the next begins is the agent's choice.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use switchboard_a2a::Dialect;

use crate::wire::{self, Event, entries, short};

#[derive(Clone, Debug, PartialEq)]
enum ArtifactContent {
    Text(String),
    Other(Value),
}

/// Artifacts by their ids.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Artifacts(BTreeMap<String, Vec<ArtifactContent>>);

impl Artifacts {
    pub(crate) fn of_task(task: &Value) -> Self {
        let mut artifacts = Self::default();
        for artifact in entries(&task["artifacts"]) {
            artifacts.add(artifact, false);
        }
        artifacts
    }

    pub(crate) fn of_stream(dialect: Dialect, frames: &[Value]) -> Self {
        let mut artifacts = Self::default();
        for frame in frames {
            match wire::event(dialect, frame) {
                Event::Task(task) => artifacts = Self::of_task(task),
                Event::Artifact(update) => artifacts.add(&update["artifact"], update["append"] == true),
                Event::Message(_) | Event::Status(_) | Event::Unknown => {}
            }
        }
        artifacts
    }

    fn add(&mut self, artifact: &Value, append: bool) {
        let pieces = self.0.entry(artifact["artifactId"].as_str().unwrap_or_default().to_owned()).or_default();
        if !append {
            pieces.clear();
        }
        for part in entries(&artifact["parts"]) {
            match (part["text"].as_str(), pieces.last_mut()) {
                (Some(text), Some(ArtifactContent::Text(before))) => before.push_str(text),
                (Some(text), _) => pieces.push(ArtifactContent::Text(text.to_owned())),
                (None, _) => pieces.push(ArtifactContent::Other(content(part))),
            }
        }
    }

    /// How the streamed artifacts differ from those of the task.
    pub(crate) fn difference(&self, task: &Self) -> Option<String> {
        let ids = self.0.keys().chain(task.0.keys());
        let id = ids.into_iter().find(|id| self.0.get(*id) != task.0.get(*id))?;
        let described = |pieces: Option<&Vec<ArtifactContent>>| match pieces {
            None => "does not have it".to_owned(),
            Some(pieces) => {
                let texts = pieces.iter().map(|piece| match piece {
                    ArtifactContent::Text(text) => text.len(),
                    ArtifactContent::Other(_) => 0,
                });
                format!("has {} parts and {} bytes of text", pieces.len(), texts.sum::<usize>())
            }
        };
        let (streamed, kept) = (described(self.0.get(id)), described(task.0.get(id)));
        Some(format!("of artifact {}, the stream {streamed}, the task {kept}", short(&json!(id))))
    }
}

/// The content of a part, with numbers normalized.
fn content(part: &Value) -> Value {
    let members = ["raw", "url", "data", "file"];
    let held = members.iter().filter_map(|member| Some(((*member).to_owned(), normal(part.get(*member)?))));
    Value::Object(held.collect())
}

fn normal(value: &Value) -> Value {
    match value {
        Value::Number(number) => json!(number.as_f64()),
        Value::Array(values) => values.iter().map(normal).collect(),
        Value::Object(members) => members.iter().map(|(name, value)| (name.clone(), normal(value))).collect(),
        _ => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn update(id: &str, append: bool, parts: Value) -> Value {
        json!({"artifactUpdate": {"artifact": {"artifactId": id, "parts": parts}, "append": append}})
    }

    #[test]
    fn chunks_make_the_same_artifact_as_the_task_has() {
        let frames = [
            json!({"task": {"artifacts": [{"artifactId": "a", "parts": [{"text": "x"}]}]}}),
            update("a", false, json!([{"text": "on"}])),
            update("a", true, json!([{"text": "e"}, {"data": {"n": 1}}])),
            update("b", true, json!([{"raw": "aGk="}])),
        ];
        let streamed = Artifacts::of_stream(Dialect::V1, &frames);
        let task = |text: &str| {
            Artifacts::of_task(&json!({"artifacts": [
                {"artifactId": "b", "parts": [{"raw": "aGk=", "mediaType": "text/plain"}]},
                {"artifactId": "a", "parts": [{"text": text}, {"data": {"n": 1.0}}]},
            ]}))
        };
        assert_eq!(streamed.difference(&task("one")), None);
        let wrong = streamed.difference(&task("once")).unwrap();
        assert!(wrong.starts_with("of artifact \"a\", the stream has 2 parts and 3 bytes"), "{wrong}");
        assert!(streamed.difference(&Artifacts::default()).unwrap().ends_with("the task does not have it"));
    }
}
