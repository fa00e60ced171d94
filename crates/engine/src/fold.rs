//! A task's state is the fold of its events, and this is the fold.
//!
//! A snapshot is the fold written down: its first line is the task as v1.0 sends it, so that a finished task can be
//! answered from it byte for byte; a second line holds what only the kernel needs.

mod log_fold;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use switchboard_a2a::{
    Artifact, Json, Message, Metadata, Task, TaskArtifactUpdate, TaskId, TaskState, TaskStatus, Timestamp,
};

pub(crate) use log_fold::LogFold;

use crate::blocking_task::BLOCKED_BY_KEY;
use crate::event::{Event, Received, Usage};
use crate::ids::Seq;
use crate::progress::PROGRESS_KEY;
use crate::result_check::is_repair;
use crate::review::{Decision, QUESTION_KEY, Review, Verdict};
use crate::store::TaskIdentity;
use crate::usage::TaskUsage;

/// The JSON of a short task fits into so much: a buffer that grows is copied each time.
const SHORT_TASK_BYTES: usize = 1024;

/// Metadata key of what the work has cost.
pub const USAGE_KEY: &str = "switchboard/usage";

/// Metadata key of what the directory says of how it picked the agent.
pub const ROUTING_KEY: &str = "switchboard/routing";

/// A task and what the kernel knows of it besides.
#[derive(Clone, Debug)]
pub struct Fold {
    /// The task as callers see it.
    pub task: Task,
    /// The rest.
    pub kernel: KernelState,
}

/// What only the kernel needs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct KernelState {
    /// The message the current turn works on.
    pub current: Option<NumberedMessage>,
    /// The number of the first message.
    pub first: u64,
    /// When the first message was received.
    pub first_at: Option<Timestamp>,
    /// The number of the message that the current turn began with; answers and messages that it has taken go on with it. 0 in
    /// what earlier versions have stored.
    #[serde(skip_serializing_if = "is_zero")]
    pub turn: u64,
    /// The number of the turn's last checkpoint.
    #[serde(skip_serializing_if = "is_none_yet")]
    pub checkpoint: u32,
    /// Messages received while a turn was running and not yet taken, oldest first.
    pub unread: VecDeque<NumberedMessage>,
    /// The agent's last question while it waits, or the one the current message answers.
    pub question: Option<Message>,
    /// What the agent put by.
    pub saved: Option<Json>,
    /// A direct reply.
    pub reply: Option<Message>,
    /// A cancellation was requested.
    pub cancel_requested: bool,
    /// The number of the last status that ended a wait: terminal or interrupted.
    pub last_stop: u64,
    /// The number of the last question that was settled elsewhere; 0 if none was.
    #[serde(skip_serializing_if = "is_zero")]
    pub settled: u64,
    /// The number of the question that the current message answers; 0 if it answers none. The question may be without words.
    #[serde(skip_serializing_if = "is_zero")]
    pub answered: u64,
    /// When the task has to be done, as its messages say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
    /// The delegation chain of the first message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chain: Option<Json>,
    /// Skills that reviewers have approved for this task.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub approved: BTreeSet<String>,
    /// The skill that the current turn was let go on with, by a reviewer or by the time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub granted: Option<String>,
    /// What the task itself has used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub used: Option<Usage>,
    /// What the trees of its children have used that have ended.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub children_used: BTreeMap<TaskId, Usage>,
    /// What a reviewer has decided last: the turn that it is about may have asked something else since.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decision>,
    /// What the question said of its answer that the current message answers; nothing if it said nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answered_review: Option<Box<Review>>,
    /// What was made since the agent began on the message that asks for its result once more: the result is looked for there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since_repair: Option<Vec<Artifact>>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_none_yet(checkpoint: &u32) -> bool {
    *checkpoint == 0
}

/// A received message and its number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NumberedMessage {
    /// The number of its event.
    pub seq: u64,
    /// The message.
    pub received: Arc<Received>,
}

impl Fold {
    /// A task nothing has happened to yet.
    pub fn new(task: &TaskIdentity) -> Self {
        let status = TaskStatus { state: TaskState::Submitted, message: None, timestamp: None };
        Self {
            task: Task {
                id: task.id.clone(),
                context_id: task.context.clone(),
                status,
                artifacts: Vec::new(),
                history: Vec::new(),
                metadata: None,
            },
            kernel: KernelState::default(),
        }
    }

    /// Takes one event in.
    pub fn apply(&mut self, seq: Seq, event: &Event) {
        match event {
            Event::Received(received) => self.receive(seq, received),
            Event::StatusUpdate(update) => self.apply_status(seq, update.status.clone(), update.metadata.as_ref()),
            Event::ArtifactUpdate(update) => {
                if let Some(artifacts) = &mut self.kernel.since_repair {
                    fold_artifact(artifacts, update);
                }
                fold_artifact(&mut self.task.artifacts, update);
            }
            Event::Replied(message) => {
                self.kernel.reply = Some(message.clone());
                self.kernel.last_stop = seq.0;
            }
            Event::Taken(taken) => self.take(*taken, true),
            Event::Joined(taken) => self.take(*taken, false),
            // Saving nothing takes back what was saved.
            Event::Saved(value) => self.kernel.saved = (value.as_str() != "null").then(|| value.clone()),
            Event::Used(own) => {
                self.kernel.used = Some(*own);
                self.show_usage();
            }
            Event::ChildUsed(used) => {
                self.kernel.children_used.insert(used.child.clone(), used.tree);
                self.show_usage();
            }
            Event::CancelRequested => self.kernel.cancel_requested = true,
            Event::Settled => self.kernel.settled = self.kernel.last_stop,
            // In the task's row, for others to find.
            Event::Noted(_) | Event::Interrupted | Event::Recovered => {}
        }
    }

    /// Makes an unread message the current one: of a turn that begins with it, or of the one that runs.
    fn take(&mut self, taken: u64, begins: bool) {
        let Some(index) = self.kernel.unread.iter().position(|unread| unread.seq == taken) else { return };
        self.kernel.current = self.kernel.unread.remove(index);
        let repairs = self.kernel.current.as_ref().is_some_and(|current| is_repair(&current.received.message));
        if repairs {
            self.kernel.since_repair = Some(Vec::new());
        } else if begins {
            (self.kernel.turn, self.kernel.checkpoint, self.kernel.granted) = (taken, 0, None);
        }
        (self.kernel.question, self.kernel.answered, self.kernel.settled) = (None, 0, 0);
        self.kernel.answered_review = None;
        self.forget(PROGRESS_KEY);
    }

    fn apply_status(&mut self, seq: Seq, status: TaskStatus, metadata: Option<&Metadata>) {
        if let Some(superseded) = self.task.status.message.take() {
            self.task.history.push(superseded);
        }
        let state = status.state;
        if state.is_interrupted() {
            self.kernel.question.clone_from(&status.message);
        }
        if state.is_interrupted() || state.is_terminal() {
            self.kernel.last_stop = seq.0;
        }
        if state != TaskState::Working {
            self.forget(PROGRESS_KEY);
        }
        self.forget(BLOCKED_BY_KEY);
        self.forget(QUESTION_KEY);
        self.task.status = status;
        if let Some(metadata) = metadata {
            self.task.metadata.get_or_insert_default().merge(metadata);
            if let Some(checkpoint) = Review::of(state, Some(metadata)).and_then(|review| review.checkpoint) {
                self.kernel.checkpoint = checkpoint;
            }
        }
    }

    /// Puts what the task and its children have used into its metadata.
    fn show_usage(&mut self) {
        let children = self.kernel.children_used.values().copied();
        let usage = TaskUsage::new(self.kernel.used.unwrap_or_default(), children);
        usage.write_to(self.task.metadata.get_or_insert_default());
    }

    /// Whether nothing follows: its state is terminal, or it was a direct reply.
    pub(crate) fn has_ended(&self) -> bool {
        self.task.status.state.is_terminal() || self.kernel.reply.is_some()
    }

    /// The task as it will be right after a message, without the rest of the fold. An answer shows the task as WORKING
    /// already; `next_status_at` is the time of the status event that says so in the same commit.
    pub fn task_with(&self, seq: Seq, received: &Event, next_status_at: Timestamp) -> Task {
        let kernel = KernelState { first: self.kernel.first, ..KernelState::default() };
        let mut after = Self { task: self.task.clone(), kernel };
        after.apply(seq, received);
        if after.is_answer(seq) {
            after.task.status.timestamp = Some(next_status_at);
        }
        after.task
    }

    /// Whether the current turn goes on from its last question without an answer, because that was settled elsewhere.
    pub(crate) fn is_settled(&self) -> bool {
        self.kernel.settled != 0 && self.kernel.settled == self.kernel.last_stop
    }

    /// Whether the message of that number is the answer to a question.
    fn is_answer(&self, seq: Seq) -> bool {
        self.kernel.first != seq.0 && self.kernel.current.as_ref().is_some_and(|current| current.seq == seq.0)
    }

    fn forget(&mut self, key: &str) {
        let Some(metadata) = &mut self.task.metadata else { return };
        metadata.remove(key);
        if metadata.is_empty() {
            self.task.metadata = None;
        }
    }

    fn receive(&mut self, seq: Seq, received: &Arc<Received>) {
        let numbered = NumberedMessage { seq: seq.0, received: received.clone() };
        let first = self.kernel.first == 0;
        if first {
            (self.kernel.first, self.kernel.turn) = (seq.0, seq.0);
            self.kernel.first_at = Some(received.at);
            self.kernel.chain.clone_from(&received.chain);
            self.task.status.timestamp = Some(received.at);
        }
        if let Some(deadline) = received.deadline {
            self.kernel.deadline = Some(self.kernel.deadline.map_or(deadline, |known| known.min(deadline)));
        }
        if let Some(routing) = &received.routing {
            self.task.metadata.get_or_insert_default().insert(ROUTING_KEY, routing.clone());
        }
        let answers = received.decision.is_some() || !self.is_for_operator();
        if self.task.status.state.is_interrupted() && answers {
            self.kernel.answered_review = self.review().map(Box::new);
            self.forget(QUESTION_KEY);
            self.kernel.current = Some(numbered);
            self.kernel.answered = self.kernel.last_stop;
            if let Some(decision) = &received.decision {
                self.approve(decision, received.by.is_some());
            }
            // The question goes into the history before its answer; the status that follows would put it behind.
            self.task.history.extend(self.task.status.message.take());
            // The status that says so is the next event; a reader of the task as of the message sees it already.
            self.task.status.state = TaskState::Working;
        } else if first {
            self.kernel.current = Some(numbered);
        } else {
            self.kernel.unread.push_back(numbered);
        }
        self.task.history.push(received.message.clone());
    }

    /// Remembers what was decided with an answer, and the skill that is approved by it: for the whole task only if that was a
    /// reviewer's word, and not a silence.
    fn approve(&mut self, decision: &Decision, is_reviewers: bool) {
        if matches!(decision.verdict, Verdict::Approve | Verdict::Modify) && decision.skill.is_some() {
            self.kernel.granted.clone_from(&decision.skill);
        }
        if decision.verdict == Verdict::Approve && is_reviewers {
            self.kernel.approved.extend(decision.skill.clone());
        }
        self.kernel.decision = Some(decision.clone());
    }

    /// The task as v1.0 sends it, which is also the first line of a snapshot.
    pub(crate) fn task_json(&self) -> Bytes {
        let mut buffer = Vec::with_capacity(SHORT_TASK_BYTES);
        if let Err(error) = serde_json::to_writer(&mut buffer, &self.task) {
            tracing::error!(%error, task = %self.task.id, "a task could not be encoded");
        }
        Bytes::from(buffer)
    }

    /// Writes the fold down.
    pub fn snapshot(&self) -> Bytes {
        let mut buffer = Vec::with_capacity(512);
        let written = serde_json::to_writer(&mut buffer, &self.task).and_then(|()| {
            if self.task.status.state.is_terminal() && self.kernel.reply.is_none() {
                return Ok(());
            }
            buffer.push(b'\n');
            serde_json::to_writer(&mut buffer, &self.kernel)
        });
        if let Err(error) = written {
            tracing::error!(%error, task = %self.task.id, "a snapshot could not be encoded");
        }
        Bytes::from(buffer)
    }

    /// Reads a fold back.
    pub fn from_snapshot(snapshot: &[u8]) -> Result<Self, serde_json::Error> {
        let mut lines = snapshot.splitn(2, |byte| *byte == b'\n');
        let task: Task = serde_json::from_slice(lines.next().unwrap_or_default())?;
        let mut kernel: KernelState = match lines.next() {
            Some(line) => serde_json::from_slice(line)?,
            None => return Ok(Self { task, kernel: KernelState::default() }),
        };
        // Older snapshots have it in the task's metadata alone.
        kernel.used = kernel.used.or_else(|| TaskUsage::read(task.metadata.as_ref()).map(|known| known.own));
        Ok(Self { task, kernel })
    }
}

/// The first line of a snapshot: the task as v1.0 sends it.
pub fn task_line(snapshot: &Bytes) -> Bytes {
    match snapshot.iter().position(|byte| *byte == b'\n') {
        Some(end) => snapshot.slice(..end),
        None => snapshot.clone(),
    }
}

/// Takes an artifact update in: a new artifact, a replacement, or a further chunk.
fn fold_artifact(artifacts: &mut Vec<Artifact>, update: &TaskArtifactUpdate) {
    let chunk = &update.artifact;
    let Some(known) = artifacts.iter_mut().find(|artifact| artifact.artifact_id == chunk.artifact_id) else {
        artifacts.push(chunk.clone());
        return;
    };
    if update.append {
        extend_artifact(known, chunk);
    } else {
        *known = chunk.clone();
    }
}

/// Puts a further chunk behind what is there of an artifact.
pub fn extend_artifact(known: &mut Artifact, chunk: &Artifact) {
    for part in &chunk.parts {
        // Chunks of plain text are one text: a reader of the task should not have to join a thousand words.
        match known.parts.last_mut() {
            Some(last) if last.is_bare_text() && part.is_bare_text() => last.push_text(part),
            _ => known.parts.push(part.clone()),
        }
    }
    if chunk.name.is_some() {
        known.name.clone_from(&chunk.name);
    }
    if chunk.description.is_some() {
        known.description.clone_from(&chunk.description);
    }
    if let Some(metadata) = &chunk.metadata {
        known.metadata.get_or_insert_with(Metadata::default).merge(metadata);
    }
    for extension in &chunk.extensions {
        if !known.extensions.contains(extension) {
            known.extensions.push(extension.clone());
        }
    }
}
