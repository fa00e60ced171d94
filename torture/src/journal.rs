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

/// What the frames of a stream say together: the last state, and all text.
#[must_use]
pub fn told(frames: &[Frame]) -> (String, String) {
    let (mut state, mut text) = (String::new(), String::new());
    for frame in frames {
        let value: Value = serde_json::from_str(&frame.data).unwrap_or_default();
        let result = &value["result"];
        let status = &result["statusUpdate"]["status"];
        if let Some(entered) = status["state"].as_str() {
            entered.clone_into(&mut state);
        }
        let holders = [&result["artifactUpdate"]["artifact"], &status["message"]];
        let parts = holders.into_iter().flat_map(|holder| holder["parts"].as_array()).flatten();
        text.extend(parts.filter_map(|part| part["text"].as_str()));
    }
    (state, text)
}

/// A client that panicked is a problem of its own; what it wrote down before is still true.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
