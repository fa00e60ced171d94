//! The end of a run, as the projector reads it: a line `ceremony.ID.completed`, and a job for each who is to be told. Both are
//! stored with the page that has the end, so each end is told once.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use switchboard_a2a::{TaskId, TaskState, TaskStatusUpdate, Timestamp};
use switchboard_engine::ids::TaskKey;
use switchboard_engine::state_label;
use switchboard_engine::store::TaskIdentity;
use switchboard_engine::store::feed::{JournalLine, topic_segment};
use switchboard_engine::store::hub::NewJob;
use switchboard_engine::store::lineage::Via;

use super::notifier::{Form, Notifier, variable_of_channel};
use super::notify::NOTIFY_KIND;
use super::{Ceremonies, Source};
use crate::journal_text::shortened;

/// What the conversations of ceremonies begin with.
const CONTEXT: &str = "ceremony.";

/// The conversation of a ceremony's runs.
pub(crate) fn context_of(id: &str) -> String {
    format!("{CONTEXT}{id}")
}

/// The ceremony that a task is a run of. Callers choose the ids of their conversations, but not which way they come.
fn ceremony_of(task: &TaskIdentity) -> Option<&str> {
    let is_run = task.lineage.via == Via::Cron && task.lineage.ancestors.is_none();
    task.context.as_str().strip_prefix(CONTEXT).filter(|_| is_run)
}

/// What follows from the end of a task.
#[derive(Default)]
pub(crate) struct Completed {
    pub(crate) line: Option<JournalLine>,
    pub(crate) jobs: Vec<NewJob>,
}

/// What is owed to one who is told.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct OwedNotice {
    pub(super) ceremony: String,
    pub(super) task: TaskId,
    pub(super) state: String,
    pub(super) at: Timestamp,
    pub(super) notifier: Value,
    /// Attempts that have failed.
    #[serde(default)]
    pub(super) attempts: u32,
    /// Pieces of its text that were delivered.
    #[serde(default)]
    pub(super) pieces: usize,
}

impl Ceremonies {
    /// What follows from the end of a task, if that is a run.
    pub(crate) fn completed(&self, key: TaskKey, task: &TaskIdentity, end: &TaskStatusUpdate) -> Completed {
        let Some(id) = ceremony_of(task) else { return Completed::default() };
        let ceremony = self.table.find(id).filter(|ceremony| ceremony.owner == task.owner);
        let now = self.parts.clock.now();
        let at = end.status.timestamp.unwrap_or(now);
        let state = end.status.state;
        let name = ceremony.as_ref().map_or(id, |ceremony| ceremony.definition.title());
        let mut payload = json!({
            "ceremony": id,
            "name": shortened(name),
            "taskId": task.id,
            "state": state_label(state),
            "success": state == TaskState::Completed,
        });
        let channel = ceremony.as_ref().and_then(|ceremony| ceremony.definition.notify_channel.as_deref());
        if let Some(channel) = channel {
            payload["channel"] = channel.into();
        }
        let line = JournalLine {
            at,
            owner: Some(task.owner.clone()),
            task: Some(task.id.clone()),
            topic: format!("ceremony.{}.completed", topic_segment(id)),
            payload: Bytes::from(payload.to_string()),
        };
        let mut notifiers: Vec<Notifier> =
            ceremony.as_ref().map(|ceremony| ceremony.definition.notify.to_vec()).unwrap_or_default();
        notifiers.extend(channel.map(|channel| Notifier::Webhook {
            url_env: variable_of_channel(channel),
            secret_env: None,
            form: Form::Discord,
        }));
        let job = |(number, notifier): (usize, &Notifier)| {
            let owed = OwedNotice {
                ceremony: id.to_owned(),
                task: task.id.clone(),
                state: state_label(state).to_owned(),
                at,
                notifier: notifier.written(),
                attempts: 0,
                pieces: 0,
            };
            NewJob {
                name: format!("{NOTIFY_KIND}:{}:{number}", key.0),
                kind: NOTIFY_KIND.to_owned(),
                run_at: now,
                body: Bytes::from(serde_json::to_vec(&owed).unwrap_or_default()),
            }
        };
        Completed { line: Some(line), jobs: notifiers.iter().enumerate().map(job).collect() }
    }

    /// Whether a ceremony may still use a variable. Files may use any.
    pub(super) fn may_use(&self, id: &str, variable: &str) -> bool {
        let is_file = self.table.find(id).is_some_and(|ceremony| ceremony.source == Source::File);
        is_file || self.parts.config.hub.registrations.env.iter().any(|name| name == variable)
    }
}
