//! What a message asks for. The suites have no side channel: the beginning of a message's id says what the agent has to
//! do with it, so this table is the whole agreement between them and the agent.

use std::time::Duration;

use clap::ValueEnum;
use switchboard_a2a::{Artifact, Json, Part, PartContent};
use switchboard_engine::AgentError;

/// How long the task of a resubscription test is at work: both suites come back to it within this time.
const LONG_WORK: Duration = Duration::from_secs(4);

/// What to do with a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Behaviour {
    /// Complete with a message.
    Complete,
    /// Complete and say nothing.
    CompleteSilently,
    /// One artifact, then complete.
    Produce(Product),
    /// The same after saying that the work has begun.
    WorkAndProduce(Product),
    /// One artifact in two pieces, then complete.
    Chunks,
    /// Answer with a message instead of a task.
    Reply,
    /// Ask, and wait for as long as it takes.
    Ask,
    /// Say that the work has begun, pause, then ask.
    WorkAndAsk,
    /// Refuse the task.
    Reject,
    /// Work for a while, then complete.
    Work(Duration),
}

/// What an artifact is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Product {
    /// A text.
    Text(&'static str),
    /// A file with its bytes.
    File,
    /// A file somewhere else.
    FileUrl,
    /// Structured data.
    Data,
}

/// What to do with a message whose id says nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Fallback {
    /// Complete the task, as the suite for 1.0 expects.
    #[default]
    Complete,
    /// Work, pause, then ask, as the suite for 0.3 expects.
    InputRequired,
}

/// Beginnings of message ids and what they stand for.
const BEHAVIOURS: [(&str, Behaviour); 16] = [
    ("tck-complete-task", Behaviour::Complete),
    ("tck-artifact-text", Behaviour::Produce(Product::Text("Generated text content"))),
    ("tck-artifact-file", Behaviour::Produce(Product::File)),
    ("tck-artifact-file-url", Behaviour::Produce(Product::FileUrl)),
    ("tck-artifact-data", Behaviour::Produce(Product::Data)),
    ("tck-message-response", Behaviour::Reply),
    ("tck-input-required", Behaviour::Ask),
    ("tck-reject-task", Behaviour::Reject),
    ("tck-stream-001", Behaviour::WorkAndProduce(Product::Text("Stream hello from TCK"))),
    ("tck-stream-002", Behaviour::CompleteSilently),
    ("tck-stream-003", Behaviour::WorkAndProduce(Product::Text("Stream task lifecycle"))),
    ("tck-stream-ordering-001", Behaviour::WorkAndProduce(Product::Text("Ordered output"))),
    ("tck-stream-artifact-text", Behaviour::WorkAndProduce(Product::Text("Streamed text content"))),
    ("tck-stream-artifact-file", Behaviour::WorkAndProduce(Product::File)),
    ("tck-stream-artifact-chunked", Behaviour::Chunks),
    ("test-resubscribe-message-id", Behaviour::Work(LONG_WORK)),
];

impl Behaviour {
    /// What a message with this id asks for: the longest beginning that is known decides.
    pub(crate) fn of(message_id: &str, fallback: Fallback) -> Self {
        let known = BEHAVIOURS.iter().filter(|(beginning, _)| message_id.starts_with(beginning));
        match known.max_by_key(|(beginning, _)| beginning.len()) {
            Some((_, behaviour)) => *behaviour,
            None => match fallback {
                Fallback::Complete => Self::Complete,
                Fallback::InputRequired => Self::WorkAndAsk,
            },
        }
    }
}

impl Product {
    /// The artifact.
    pub(crate) fn artifact(self) -> Result<Artifact, AgentError> {
        let part = match self {
            Self::Text(text) => Part::text(text),
            Self::File => file(PartContent::Raw(b"content of the file\n".to_vec())),
            Self::FileUrl => file(PartContent::Url("https://example.com/output.txt".to_owned())),
            Self::Data => {
                let value = Json::parse(r#"{"key":"value","count":42}"#);
                Part::data(value.map_err(|error| AgentError::new(error.to_string()))?)
            }
        };
        Ok(Artifact::new(vec![part]).named("output"))
    }
}

fn file(content: PartContent) -> Part {
    Part { filename: Some("output.txt".to_owned()), media_type: Some("text/plain".to_owned()), ..Part::new(content) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_known_beginning_decides() {
        let of = |id| Behaviour::of(id, Fallback::Complete);
        assert_eq!(of("tck-artifact-file-1a2b"), Behaviour::Produce(Product::File));
        assert_eq!(of("tck-artifact-file-url-1a2b"), Behaviour::Produce(Product::FileUrl));
        assert_eq!(of("tck-stream-002-1a2b"), Behaviour::CompleteSilently);
        assert_eq!(of("something else"), Behaviour::Complete);
        assert_eq!(Behaviour::of("something else", Fallback::InputRequired), Behaviour::WorkAndAsk);
        assert_eq!(Behaviour::of("tck-complete-task-1a2b", Fallback::InputRequired), Behaviour::Complete);
    }
}
