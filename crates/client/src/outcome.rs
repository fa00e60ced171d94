//! What a message has come to, as a kind that a program can act on and as text that a person can read.

use switchboard_a2a::{Artifact, Message, Part, PartContent, Role, SendResponse, Task, TaskState};

/// What is said where there is nothing to read.
const NOTHING: &str = "(no text)";

/// The artifact in which coding agents think aloud.
const REASONING: &str = "reasoning";

/// What a message has come to.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// A direct reply.
    Replied(Message),
    /// The task is done.
    Completed(Task),
    /// The task has failed.
    Failed(Task),
    /// The task was stopped.
    Canceled(Task),
    /// The agent will not do it.
    Rejected(Task),
    /// The agent asks, and waits for a message to this task.
    InputRequired(Task),
    /// The agent waits until somebody has given it access to something.
    AuthRequired(Task),
    /// The agent is at work.
    Unfinished(Task),
}

impl From<SendResponse> for Outcome {
    fn from(response: SendResponse) -> Self {
        match response {
            SendResponse::Message(message) => Self::Replied(message),
            SendResponse::Task(task) => Self::from(task),
        }
    }
}

impl From<Task> for Outcome {
    fn from(task: Task) -> Self {
        match task.status.state {
            TaskState::Completed => Self::Completed(task),
            TaskState::Failed => Self::Failed(task),
            TaskState::Canceled => Self::Canceled(task),
            TaskState::Rejected => Self::Rejected(task),
            TaskState::InputRequired => Self::InputRequired(task),
            TaskState::AuthRequired => Self::AuthRequired(task),
            TaskState::Unspecified | TaskState::Submitted | TaskState::Working => Self::Unfinished(task),
        }
    }
}

impl Outcome {
    /// The task, unless it was a direct reply.
    pub fn task(&self) -> Option<&Task> {
        match self {
            Self::Replied(_) => None,
            Self::Completed(task)
            | Self::Failed(task)
            | Self::Canceled(task)
            | Self::Rejected(task)
            | Self::InputRequired(task)
            | Self::AuthRequired(task)
            | Self::Unfinished(task) => Some(task),
        }
    }

    /// Whether it is what was wanted: a reply, or a task that is done.
    pub fn is_success(&self) -> bool {
        matches!(self, Self::Replied(_) | Self::Completed(_))
    }

    /// What is to be read: the artifacts, else what was said with the status, else the last thing the agent said. Whoever
    /// waits for something says with its status what for, so that this comes first there.
    pub fn text(&self) -> String {
        let task = match self {
            Self::Replied(message) => return or_nothing(parts(&message.parts)),
            Self::InputRequired(task) | Self::AuthRequired(task) => {
                return or_nothing(said(task).or_else(|| made(task)));
            }
            Self::Rejected(task) | Self::Failed(task) | Self::Canceled(task) => {
                return or_nothing(said(task).or_else(|| made(task)));
            }
            Self::Completed(task) | Self::Unfinished(task) => task,
        };
        or_nothing(made(task).or_else(|| said(task)))
    }
}

fn or_nothing(text: Option<String>) -> String {
    text.unwrap_or_else(|| NOTHING.to_owned())
}

/// Whether an artifact is no part of the answer, unless there is nothing else: data, which is for programs, and what an
/// agent thought aloud on the way.
pub fn is_secondary(artifact: &Artifact) -> bool {
    artifact.name.as_deref() == Some(REASONING) || artifact.parts.iter().all(is_data)
}

fn made(task: &Task) -> Option<String> {
    let (beside, answer): (Vec<&Artifact>, Vec<&Artifact>) = task.artifacts.iter().partition(|made| is_secondary(made));
    let readable = |all: &[&Artifact]| {
        let texts: Vec<String> = all.iter().filter_map(|artifact| parts(&artifact.parts)).collect();
        (!texts.is_empty()).then(|| texts.join("\n\n"))
    };
    readable(&answer).or_else(|| said(task).filter(|said| !points_to_artifacts(said))).or_else(|| readable(&beside))
}

/// Whether a message of a completed task only says which artifacts hold the answer, as agents hosted by Switchboard do.
pub fn points_to_artifacts(text: &str) -> bool {
    text.trim_start().starts_with("The answer is in the artifact")
}

fn is_data(part: &Part) -> bool {
    matches!(part.content, PartContent::Data(_))
}

fn said(task: &Task) -> Option<String> {
    let status = task.status.message.as_ref();
    let history = task.history.iter().rev().filter(|message| message.role == Role::Agent);
    status.into_iter().chain(history).find_map(|message| parts(&message.parts))
}

/// The readable parts: text as it is, files by their name, and data as JSON where there is nothing else. Texts of one
/// artifact may be pieces of one.
fn parts(parts: &[Part]) -> Option<String> {
    let mut text = String::new();
    let mut is_running = false;
    let only_data = parts.iter().all(is_data);
    for part in parts.iter().filter(|part| only_data || !is_data(part)) {
        let (piece, runs) = match &part.content {
            PartContent::Text(piece) => (piece.clone(), true),
            PartContent::Data(data) => (data.as_str().to_owned(), false),
            PartContent::Url(url) => (format!("[file: {url}]"), false),
            PartContent::Raw(bytes) => {
                let name = part.filename.as_deref().or(part.media_type.as_deref()).unwrap_or("unnamed");
                (format!("[file: {name}, {} bytes]", bytes.len()), false)
            }
        };
        let joins = is_running && runs;
        if !joins && !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&piece);
        is_running = runs;
    }
    (!text.trim().is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use switchboard_a2a::{ContextId, Json, TaskId, TaskStatus};

    use super::*;

    fn task(state: TaskState, said: Option<&str>, made: &[&[&str]]) -> Task {
        let message = said.map(|text| Message::text(Role::Agent, text));
        let artifact = |texts: &&[&str]| Artifact::new(texts.iter().map(|text| Part::text(*text)).collect());
        Task {
            id: TaskId::from("t"),
            context_id: ContextId::from("c"),
            status: TaskStatus { state, message, timestamp: None },
            artifacts: made.iter().map(artifact).collect(),
            history: Vec::new(),
            metadata: None,
        }
    }

    fn text(state: TaskState, said: Option<&str>, made: &[&[&str]]) -> String {
        Outcome::from(task(state, said, made)).text()
    }

    #[test]
    fn what_was_made_is_read_first() {
        let done = TaskState::Completed;
        assert_eq!(text(done, Some("finished"), &[&["a report"]]), "a report");
        assert_eq!(text(done, Some("finished"), &[&["one ", "report"], &["another"]]), "one report\n\nanother");
        assert_eq!(text(done, Some("finished"), &[]), "finished");
        assert_eq!(text(done, None, &[]), NOTHING);
        assert_eq!(text(TaskState::Working, Some("at it"), &[&["half"]]), "half");
    }

    #[test]
    fn data_beside_text_is_for_programs() {
        let mut done = task(TaskState::Completed, None, &[&["a report"]]);
        let data = Artifact::new(vec![Part::data(Json::from_serialize(&7).unwrap())]);
        done.artifacts.push(data);
        assert_eq!(Outcome::from(done.clone()).text(), "a report");
        done.artifacts.remove(0);
        assert_eq!(Outcome::from(done).text(), "7");
    }

    #[test]
    fn empty_artifacts_are_none() {
        for empty in [&[][..], &[""], &["", "  \n"]] {
            assert_eq!(text(TaskState::Completed, Some("finished"), &[empty]), "finished", "{empty:?}");
            assert_eq!(text(TaskState::Completed, None, &[empty]), NOTHING, "{empty:?}");
        }
        assert_eq!(text(TaskState::Completed, Some(" "), &[]), NOTHING);
        assert_eq!(text(TaskState::Completed, None, &[&[""], &["second"]]), "second");
    }

    #[test]
    fn the_last_thing_said_is_read_if_there_is_nothing_else() {
        let mut done = task(TaskState::Completed, None, &[]);
        done.history = vec![
            Message::text(Role::Agent, "first"),
            Message::text(Role::Agent, "last"),
            Message::text(Role::User, "thanks"),
        ];
        assert_eq!(Outcome::from(done).text(), "last");
    }

    #[test]
    fn a_question_and_a_reason_are_read_before_what_was_made() {
        use TaskState::{AuthRequired, Canceled, Failed, InputRequired, Rejected};
        for state in [InputRequired, AuthRequired, Failed, Rejected, Canceled] {
            assert_eq!(text(state, Some("why"), &[&["half"]]), "why", "{state:?}");
            assert_eq!(text(state, None, &[&["half"]]), "half", "{state:?}");
            assert_eq!(text(state, None, &[]), NOTHING, "{state:?}");
            let outcome = Outcome::from(task(state, Some("why"), &[&["half"]]));
            assert!(!outcome.is_success(), "{outcome:?}");
        }
        let asks = Outcome::from(task(InputRequired, Some("which?"), &[]));
        assert!(matches!(asks, Outcome::InputRequired(_)), "{asks:?}");
    }

    #[test]
    fn what_is_no_text_is_told_in_words() {
        let data = PartContent::Data(switchboard_a2a::Json::parse(r#"{"a":1}"#).unwrap());
        let named = Part { filename: Some("a.png".to_owned()), ..Part::new(PartContent::Raw(vec![1, 2, 3])) };
        let url = Part::new(PartContent::Url("https://files.example/b".to_owned()));
        let parts = vec![Part::text("see "), Part::text("this:"), Part::new(data), named, url];
        let reply = Outcome::Replied(Message { parts, ..Message::text(Role::Agent, "") });
        assert_eq!(reply.text(), "see this:\n[file: a.png, 3 bytes]\n[file: https://files.example/b]");
        assert!(reply.is_success() && reply.task().is_none());
    }

    #[test]
    fn data_is_read_where_there_is_nothing_else() {
        let data = Artifact::new(vec![Part::new(PartContent::Data(Json::parse(r#"{"a":1}"#).unwrap()))]);
        let thought = Artifact::text("hm").named("reasoning");
        let text = |said: Option<&str>, artifacts: &[&Artifact]| {
            let artifacts = artifacts.iter().map(|artifact| (*artifact).clone()).collect();
            Outcome::from(Task { artifacts, ..task(TaskState::Completed, said, &[]) }).text()
        };
        assert_eq!(text(None, &[&data, &Artifact::text("done")]), "done");
        assert_eq!(text(None, &[&thought, &Artifact::text("done")]), "done");
        assert_eq!(text(Some("finished"), &[&data]), "finished");
        assert_eq!(text(Some("The answer is in the artifact \"x\"."), &[&data]), r#"{"a":1}"#);
        assert_eq!(text(None, &[&data]), r#"{"a":1}"#);
        assert_eq!(text(None, &[&thought]), "hm");
    }
}
