//! What clients were told, written down at the moment they read it, and folded afterwards into what must still be true.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use crate::calls::{Answer, Send, TaskFacts};
use crate::event_stream::Frame;

/// One thing that happened at a client.
#[derive(Clone, Debug)]
enum Entry {
    Saw { path: &'static str, facts: TaskFacts },
    Frame { path: &'static str, frame: Frame },
    Touched { task: String },
    Tried(Send),
    Answered { key: String, answer: Answer },
}

/// The acknowledgements of one round, shared by its clients.
#[derive(Default)]
pub struct Journal {
    entries: Mutex<Vec<Entry>>,
    problems: Mutex<Vec<String>>,
}

/// Everything known about one task.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// The agent's address.
    pub path: &'static str,
    /// The last that was told of it as a whole.
    pub last: Option<TaskFacts>,
    /// Whether an answer or a cancel was sent after that, which may or may not have arrived.
    pub touched: bool,
    /// The first frame of its stream, if it was streamed.
    pub opening: Option<Frame>,
    /// The frames after it.
    pub frames: Vec<Frame>,
}

/// A round's acknowledgements, by task and by key.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// By task id.
    pub tasks: BTreeMap<String, Known>,
    /// Keyed sends with the answers they got, by key.
    pub keyed: BTreeMap<String, (Send, Vec<Answer>)>,
}

impl Journal {
    /// A task was seen in an answer.
    pub fn saw(&self, path: &'static str, facts: &TaskFacts) {
        let facts = facts.clone();
        self.push(Entry::Saw { path, facts });
    }

    /// A frame of a stream arrived whole.
    pub fn frame(&self, path: &'static str, frame: Frame) {
        self.push(Entry::Frame { path, frame });
    }

    /// An answer or a cancel is about to be sent to a task.
    pub fn touched(&self, task: &str) {
        self.push(Entry::Touched { task: task.to_owned() });
    }

    /// A keyed send is about to be made.
    pub fn tried(&self, send: &Send) {
        self.push(Entry::Tried(send.clone()));
    }

    /// A keyed send was answered.
    pub fn answered(&self, key: &str, answer: &Answer) {
        let answer = answer.clone();
        self.push(Entry::Answered { key: key.to_owned(), answer });
    }

    /// Something that must not happen happened while the server was up.
    pub fn problem(&self, problem: String) {
        lock(&self.problems).push(problem);
    }

    /// What went wrong while the server was up.
    #[must_use]
    pub fn problems(&self) -> Vec<String> {
        lock(&self.problems).clone()
    }

    /// How many entries there are.
    #[must_use]
    pub fn len(&self) -> usize {
        lock(&self.entries).len()
    }

    /// Whether nothing was acknowledged.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn push(&self, entry: Entry) {
        lock(&self.entries).push(entry);
    }

    /// Folds the entries.
    #[must_use]
    pub fn facts(&self) -> Facts {
        let mut facts = Facts::default();
        for entry in lock(&self.entries).iter().cloned() {
            match entry {
                Entry::Saw { path, facts: seen } => {
                    let known = facts.tasks.entry(seen.id.clone()).or_default();
                    known.path = path;
                    known.touched = false;
                    known.last = Some(seen);
                }
                Entry::Frame { path, frame } => {
                    let (task, is_opening) = task_of(&frame);
                    let known = facts.tasks.entry(task).or_default();
                    known.path = path;
                    if is_opening {
                        known.opening = Some(frame);
                    } else {
                        known.frames.push(frame);
                    }
                }
                Entry::Touched { task } => facts.tasks.entry(task).or_default().touched = true,
                Entry::Tried(send) => {
                    let key = send.key.clone().unwrap_or_default();
                    facts.keyed.entry(key).or_insert((send, Vec::new()));
                }
                Entry::Answered { key, answer } => {
                    if let Some((_, answers)) = facts.keyed.get_mut(&key) {
                        answers.push(answer);
                    }
                }
            }
        }
        facts
    }
}

/// The task a frame is about, and whether it is the whole task.
fn task_of(frame: &Frame) -> (String, bool) {
    let value: Value = serde_json::from_str(&frame.data).unwrap_or_default();
    let result = &value["result"];
    let whole = &result["task"]["id"];
    let update = [&result["statusUpdate"]["taskId"], &result["artifactUpdate"]["taskId"]];
    let id = update.into_iter().find_map(Value::as_str).or(whole.as_str());
    (id.unwrap_or_default().to_owned(), whole.is_string())
}

/// What the frames of a stream say together: the last state, and the text of the artifacts, or of the last message where
/// there are none.
#[must_use]
pub fn told(frames: &[Frame]) -> (String, String) {
    let (mut state, mut text, mut message) = (String::new(), String::new(), String::new());
    for frame in frames {
        let value: Value = serde_json::from_str(&frame.data).unwrap_or_default();
        let result = &value["result"];
        let status = &result["statusUpdate"]["status"];
        if let Some(entered) = status["state"].as_str() {
            entered.clone_into(&mut state);
        }
        text.push_str(&said(&result["artifactUpdate"]["artifact"]));
        if status["message"].is_object() {
            message = said(&status["message"]);
        }
    }
    (state, if text.is_empty() { message } else { text })
}

fn said(holder: &Value) -> String {
    let parts = holder["parts"].as_array().into_iter().flatten();
    parts.filter_map(|part| part["text"].as_str()).collect()
}

/// A client that panicked is a problem of its own; what it wrote down before is still true.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_word_on_a_task_counts_and_a_later_touch_opens_it_again() {
        let journal = Journal::default();
        let facts = |state: &str| TaskFacts {
            id: "t".to_owned(),
            state: state.to_owned(),
            text: String::new(),
            messages: Vec::new(),
        };
        journal.saw("/a2a/probe", &facts("TASK_STATE_WORKING"));
        journal.touched("t");
        journal.saw("/a2a/probe", &facts("TASK_STATE_INPUT_REQUIRED"));
        let known = journal.facts().tasks["t"].clone();
        assert_eq!((known.last, known.touched), (Some(facts("TASK_STATE_INPUT_REQUIRED")), false));
        journal.touched("t");
        assert!(journal.facts().tasks["t"].touched);
    }

    #[test]
    fn frames_add_up_to_a_state_and_a_text() {
        let journal = Journal::default();
        let frame = |id: &str, result: Value| Frame {
            id: id.to_owned(),
            data: serde_json::json!({ "result": result }).to_string(),
        };
        let parts = |text: &str| serde_json::json!([{ "text": text }]);
        let chunk = |text: &str| serde_json::json!({ "taskId": "t", "artifact": { "parts": parts(text) } });
        let status = serde_json::json!({ "state": "TASK_STATE_COMPLETED", "message": { "parts": parts("c") } });
        for (id, result) in [
            ("1.1", serde_json::json!({ "task": { "id": "t" } })),
            ("1.2", serde_json::json!({ "artifactUpdate": chunk("a") })),
            ("1.3", serde_json::json!({ "artifactUpdate": chunk("b") })),
            ("1.4", serde_json::json!({ "statusUpdate": { "taskId": "t", "status": status } })),
        ] {
            journal.frame("/a2a/probe", frame(id, result));
        }
        let known = journal.facts().tasks["t"].clone();
        assert_eq!(known.opening.map(|frame| frame.id).as_deref(), Some("1.1"));
        assert_eq!(told(&known.frames), ("TASK_STATE_COMPLETED".to_owned(), "ab".to_owned()));
    }
}
