//! What a turn saves of its remote task, so that the next process knows what was done there.

use serde::{Deserialize, Serialize};
use switchboard_a2a::{ArtifactId, ContextId, Json, Metadata, TaskId};
use switchboard_engine::event::Event;
use switchboard_engine::ids::TaskKey;
use switchboard_engine::{Engine, Error, Seq, Usage};

/// The log of a task is read in steps of this size.
const LOG_BYTES: usize = 1 << 20;
/// Notifications of older tasks than these are not expected any more.
const MOST_BEFORE: usize = 16;

/// Saved state of a task of a remote agent. Nothing saved: nothing was sent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Saved {
    /// The message of a turn was perhaps sent.
    Sending(Sending),
    /// It has surely not arrived, and will be sent when the agent can be reached.
    Unsent(Sending),
    /// The message has arrived.
    Attached(Attached),
    /// The agent has replied with a message; there is no task.
    Replied,
}

/// A message that is being sent, with all that its request does not have from its turn: a repetition is the same bytes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Sending {
    /// The number of the message in the log here.
    pub turn: u64,
    /// The agent recognises a repetition by its idempotency key.
    pub keyed: bool,
    /// The address of the agent that it is sent to; absent in what earlier versions have saved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The remote task whose question it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers: Option<Attached>,
    /// The artifacts of earlier turns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<ArtifactId>,
    /// The remote tasks of earlier turns, of which there may still be news.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub before: Vec<TaskId>,
    /// What the remote tasks of earlier turns have used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used: Option<Usage>,
    /// The conversation there, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<ContextId>,
    /// Where push notifications are to go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub callback: Option<String>,
    /// The delegation chain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chain: Option<Json>,
    /// What the extensions of the agent's card expect in the request.
    #[serde(default, skip_serializing_if = "Metadata::is_empty")]
    pub stamps: Metadata,
}

/// A remote task that is followed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Attached {
    /// The number of the last message that was sent to it.
    pub turn: u64,
    /// The number of the message that it began with.
    pub since: u64,
    /// Its id there.
    pub task: TaskId,
    /// Its conversation there.
    pub context: ContextId,
    /// The address of the agent that has it; absent in what earlier versions have saved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// How long it was followed.
    #[serde(default)]
    pub spent_ms: u64,
    /// The artifacts of earlier turns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<ArtifactId>,
    /// The remote tasks of earlier turns, of which there may still be news.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub before: Vec<TaskId>,
    /// What those have used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used: Option<Usage>,
    /// Its end was told.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ended: bool,
}

impl Saved {
    /// What a turn has saved; nothing if it is none of these.
    pub fn read(saved: &Json) -> Option<Self> {
        saved.read().ok()
    }

    /// The remote task that it names.
    pub fn remote_task(&self) -> Option<&TaskId> {
        match self {
            Self::Sending(sending) | Self::Unsent(sending) => sending.answers.as_ref().map(|answered| &answered.task),
            Self::Attached(attached) => Some(&attached.task),
            Self::Replied => None,
        }
    }

    /// The address of the agent that has that task, or perhaps has the message.
    pub fn url(&self) -> Option<&str> {
        match self {
            Self::Sending(sending) => sending.url.as_deref(),
            Self::Unsent(sending) => sending.answers.as_ref().and_then(|answered| answered.url.as_deref()),
            Self::Attached(attached) => attached.url.as_deref(),
            Self::Replied => None,
        }
    }

    /// The remote tasks of the turns up to now, the newest last.
    pub(super) fn remote_tasks(&self) -> Vec<TaskId> {
        let mut before = match self {
            Self::Sending(sending) | Self::Unsent(sending) => sending.before.clone(),
            Self::Attached(attached) => attached.before.clone(),
            Self::Replied => Vec::new(),
        };
        if let Some(task) = self.remote_task().filter(|task| !before.contains(task)) {
            before.push(task.clone());
        }
        before.drain(..before.len().saturating_sub(MOST_BEFORE));
        before
    }

    /// What is at the remote server; of a message that has not arrived, the task that it would have answered.
    fn there(self) -> Option<Self> {
        match self {
            Self::Unsent(sending) => sending.answers.map(Self::Attached),
            saved => Some(saved),
        }
    }
}

/// What the log of a task says was saved last, and the number of its last question.
pub(crate) async fn saved_state(
    engine: &Engine,
    task: &TaskId,
    key: TaskKey,
) -> Result<(Option<Saved>, Option<Seq>), Error> {
    let log = engine.log(task, key);
    let (mut after, mut saved, mut question) = (Seq(0), None, None);
    loop {
        let events = log.after(after, LOG_BYTES).await?;
        let Some(last) = events.last() else { return Ok((saved, question)) };
        after = last.seq;
        for event in &events {
            match Event::decode(&event.line) {
                Ok(Event::Saved(value)) => saved = Saved::read(&value).and_then(Saved::there),
                Ok(Event::StatusUpdate(update)) if update.status.state.is_interrupted() => question = Some(event.seq),
                _ => {}
            }
        }
    }
}

impl Sending {
    /// What is followed once the remote task is known.
    pub(super) fn attach(&self, task: TaskId, context: ContextId) -> Attached {
        match &self.answers {
            Some(answered) if answered.task == task => Attached { turn: self.turn, ..answered.clone() },
            _ => Attached {
                turn: self.turn,
                since: self.turn,
                task,
                context,
                url: self.url.clone(),
                spent_ms: 0,
                earlier: self.earlier.clone(),
                before: self.before.clone(),
                used: self.used,
                ended: false,
            },
        }
    }
}
