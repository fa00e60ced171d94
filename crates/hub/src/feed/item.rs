//! The items of a row: one for each event that callers may see, and beside it one for what it means.

use std::sync::Arc;

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use switchboard_a2a::{ContextId, Message, TaskId, TaskState, TaskStatusUpdate, Timestamp};
use switchboard_engine::event::{Event, Received};
use switchboard_engine::ids::TaskKey;
use switchboard_engine::reason::{REASON_KEY, Reason};
use switchboard_engine::store::feed::{FeedContent, FeedCursor, FeedRow, JournalLine, Position};
use switchboard_engine::store::{EventRow, StoreError, TaskIdentity};
use switchboard_engine::{Seq, Verdict, state_label};

use super::alias::NamedItem;
use super::filter::FeedFilter;
use super::topic::segment;
use super::trace::TaskOrigin;
use super::view::{View, is_own};
use crate::health::Outcome;
use crate::hub::HubState;

/// One item of the feed.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Item {
    /// Its place in the order. What an event means has the place of the event.
    #[serde(serialize_with = "cursor_text")]
    pub(crate) id: FeedCursor,
    pub(crate) topic: String,
    /// In milliseconds; absent if the event has none.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "milliseconds")]
    pub(crate) timestamp: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) correlation_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) parent_id: Option<String>,
    pub(crate) source: Source,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) payload: Option<Box<RawValue>>,
    /// The state of its task, if it is about one.
    #[serde(skip)]
    pub(crate) state: Option<TaskState>,
    /// What else it is called, if an index was asked for it.
    #[serde(skip)]
    pub(crate) aliases: Vec<String>,
}

/// What an item is about.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Source {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) agent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) caller: Option<String>,
    /// The name of its key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) caller_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) task_id: Option<TaskId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) context_id: Option<ContextId>,
}

/// The payload of `task.received`. Payloads are written from types and not from a `serde_json::Value`: parts and metadata of
/// a message are JSON as it came, and a number may be too large for a `Value`, or a text have a lone surrogate.
#[derive(Serialize)]
struct MessagePayload<'a> {
    message: &'a Message,
}

/// The payload of `inbox.decided`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DecidedPayload<'a> {
    message: &'a Message,
    by: &'a str,
    decision: Option<Verdict>,
    /// The name of its key.
    #[serde(skip_serializing_if = "Option::is_none")]
    by_name: Option<String>,
}

/// The payload of `outcome`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct OutcomePayload<'a> {
    #[serde(flatten)]
    outcome: &'a Outcome,
    /// The name of its key.
    #[serde(skip_serializing_if = "Option::is_none")]
    actor_name: Option<String>,
}

impl Item {
    /// Says that items before the next one may be missing.
    pub(crate) fn gap(at: FeedCursor) -> Self {
        Self {
            id: at,
            topic: "gap".to_owned(),
            timestamp: None,
            correlation_id: None,
            parent_id: None,
            source: Source::default(),
            payload: None,
            state: None,
            aliases: Vec::new(),
        }
    }

    /// About how many bytes it has as JSON.
    pub(crate) fn bytes(&self) -> usize {
        self.payload.as_ref().map_or(0, |payload| payload.get().len()) + ITEM_BYTES
    }
}

/// About what an item has besides its payload.
const ITEM_BYTES: usize = 512;

/// The items of a row that a caller may see and wants, of events after a number.
pub(crate) async fn items(
    hub: &HubState,
    view: &View,
    filter: &FeedFilter,
    row: &FeedRow,
    after: Seq,
) -> Result<Vec<Item>, StoreError> {
    match &row.content {
        FeedContent::Journal(line) => Ok(journal_item(hub, view, filter, row, line).into_iter().collect()),
        FeedContent::Events { .. } if row.is_hidden() => Ok(Vec::new()),
        FeedContent::Events { key, task, events, .. } => {
            if !view.sees_task(task) || !filter.wants_task(task) {
                return Ok(Vec::new());
            }
            task_items(hub, filter, row, *key, task, events, after).await
        }
    }
}

async fn task_items(
    hub: &HubState,
    filter: &FeedFilter,
    row: &FeedRow,
    key: TaskKey,
    task: &TaskIdentity,
    events: &EventRow,
    after: Seq,
) -> Result<Vec<Item>, StoreError> {
    // A task whose log is gone is read no further.
    let Some(origin) = hub.traces.origin(key, task, events).await? else { return Ok(Vec::new()) };
    if !filter.wants_correlation(Some(&origin.correlation)) {
        return Ok(Vec::new());
    }
    let items = Vec::new();
    let mut builder = RowItems { hub, filter, row, key, task, origin: &origin, events, at: None, state: None, items };
    for (seq, line) in events.lines().filter(|(seq, _)| *seq > after) {
        builder.add(seq, line).await?;
    }
    Ok(builder.items)
}

/// The items of a row as they are made.
struct RowItems<'a> {
    hub: &'a HubState,
    filter: &'a FeedFilter,
    row: &'a FeedRow,
    key: TaskKey,
    task: &'a TaskIdentity,
    origin: &'a Arc<TaskOrigin>,
    events: &'a EventRow,
    /// The time of the last event that has one.
    at: Option<Timestamp>,
    /// The state that the event is about that is looked at.
    state: Option<TaskState>,
    items: Vec<Item>,
}

impl RowItems<'_> {
    async fn add(&mut self, seq: Seq, line: &[u8]) -> Result<(), StoreError> {
        self.state = None;
        if line.starts_with(br#"{"artifactUpdate""#) {
            self.push(seq, "task.artifact", None, || raw(line));
        } else if line.starts_with(br#"{"statusUpdate""#) {
            if let Ok(Event::StatusUpdate(update)) = Event::decode(line) {
                self.add_status(seq, line, &update);
                self.add_outcome(seq, &update).await?;
            }
        } else if line.starts_with(br#"{"received""#)
            && let Ok(Event::Received(received)) = Event::decode(line)
        {
            self.add_message(seq, &received);
        }
        Ok(())
    }

    fn add_status(&mut self, seq: Seq, line: &[u8], update: &TaskStatusUpdate) {
        let state = update.status.state;
        self.state = Some(state);
        self.at = update.status.timestamp.or(self.at);
        self.push(seq, &format!("task.{}", state_label(state)), None, || raw(line));
        if state.is_interrupted() {
            self.push(seq, "inbox.opened", None, || raw(line));
        }
        if state.is_terminal() && has_expired(update) {
            self.push(seq, "inbox.expired", None, || raw(line));
        }
    }

    /// What the end of a task means. What the hub's own agents do is counted where it is done.
    async fn add_outcome(&mut self, seq: Seq, update: &TaskStatusUpdate) -> Result<(), StoreError> {
        if !update.status.state.is_terminal() || is_own(&self.task.agent) {
            return Ok(());
        }
        let skill = self.origin.skill.as_deref().unwrap_or("-");
        // It may take a whole log to know it.
        if self.filter.index.is_some() {
            self.push(seq, "outcome", Some(skill), || None);
        } else if self.wants(seq, "outcome", Some(skill)) {
            let outcome = Outcome::read(self.hub, self.key, self.task, self.origin, self.events, update).await?;
            let actor_name = self.hub.parts.callers.name(&outcome.actor);
            let payload = OutcomePayload { outcome: &outcome, actor_name };
            self.push(seq, "outcome", Some(skill), || to_raw_value(&payload).ok());
        }
        Ok(())
    }

    fn add_message(&mut self, seq: Seq, received: &Received) {
        self.at = Some(received.at);
        let message = &received.message;
        self.push(seq, "task.received", None, || to_raw_value(&MessagePayload { message }).ok());
        if received.decision.is_some() || self.is_answer(seq) {
            let by = received.by.as_ref().unwrap_or(&self.task.owner);
            let verdict = received.decision.as_ref().map(|decision| decision.verdict);
            let by_name = self.hub.parts.callers.name(by);
            let payload = DecidedPayload { message, by: by.as_str(), decision: verdict, by_name };
            self.push(seq, "inbox.decided", None, || to_raw_value(&payload).ok());
        }
    }

    /// An answer is stored with the status that goes on; any other message of a task that is there is stored alone.
    fn is_answer(&self, seq: Seq) -> bool {
        let next = self.events.line(seq.plus(1));
        let goes_on = |line: &[u8]| match Event::decode(line) {
            Ok(Event::StatusUpdate(update)) => update.status.state == TaskState::Working,
            _ => false,
        };
        seq > Seq(1) && self.events.first_seq == seq && next.is_some_and(goes_on)
    }

    /// A topic of this agent, with one more word behind it if there is one.
    fn topic(&self, topic: &str, word: Option<&str>) -> String {
        let topic = format!("{topic}.{}", segment(self.task.agent.as_str()));
        match word {
            Some(word) => format!("{topic}.{}", segment(word)),
            None => topic,
        }
    }

    /// Whether an item is wanted, by its topic or by what earlier hubs call it.
    fn wants(&self, seq: Seq, topic: &str, word: Option<&str>) -> bool {
        self.filter.wants_topic(&self.topic(topic, word)) || self.filter.wants_alias(&self.named(seq, topic, word))
    }

    fn named<'b>(&'b self, seq: Seq, topic: &'b str, word: Option<&'b str>) -> NamedItem<'b> {
        let (correlation, actor) = (self.origin.correlation.as_str(), self.task.owner.as_str());
        NamedItem { topic, is_first: seq == Seq(1), correlation, actor, skill: word }
    }

    /// Adds an item if it is wanted.
    fn push(&mut self, seq: Seq, topic: &str, word: Option<&str>, payload: impl FnOnce() -> Option<Box<RawValue>>) {
        if !self.wants(seq, topic, word) {
            return;
        }
        let aliases = self.filter.aliases_in_index(&self.named(seq, topic, word));
        let topic = self.topic(topic, word);
        let position = Position { major: self.row.major, row: self.row.row, seq };
        self.items.push(Item {
            id: FeedCursor { epoch: self.row.epoch, position },
            topic,
            timestamp: self.at,
            correlation_id: Some(self.origin.correlation.clone()),
            parent_id: self.origin.parent.clone(),
            source: Source {
                agent: Some(self.task.agent.to_string()),
                caller: Some(self.task.owner.to_string()),
                caller_name: self.hub.parts.callers.name(&self.task.owner),
                task_id: Some(self.task.id.clone()),
                context_id: Some(self.task.context.clone()),
            },
            payload: if self.filter.index.is_some() { None } else { payload() },
            state: self.state,
            aliases,
        });
    }
}

/// A journal line. Its payload may name the agent it is about, and the work that it belongs to.
fn journal_item(hub: &HubState, view: &View, filter: &FeedFilter, row: &FeedRow, line: &JournalLine) -> Option<Item> {
    #[derive(Default, serde::Deserialize)]
    #[serde(rename_all = "camelCase", default)]
    struct Named {
        agent: Option<String>,
        correlation_id: Option<String>,
        parent_id: Option<String>,
    }
    let named: Named = serde_json::from_slice(&line.payload).unwrap_or_default();
    let wanted = view.sees_line(line, named.agent.as_deref())
        && filter.wants_line(named.agent.as_deref(), line.task.as_ref())
        && filter.wants_topic(&line.topic)
        && filter.wants_correlation(named.correlation_id.as_deref());
    wanted.then(|| Item {
        id: row.cursor(),
        topic: line.topic.clone(),
        timestamp: Some(line.at),
        correlation_id: named.correlation_id,
        parent_id: named.parent_id,
        source: Source {
            agent: named.agent,
            caller: line.owner.as_ref().map(ToString::to_string),
            caller_name: line.owner.as_ref().and_then(|owner| hub.parts.callers.name(owner)),
            task_id: line.task.clone(),
            context_id: None,
        },
        payload: if filter.index.is_some() { None } else { raw(&line.payload) },
        state: None,
        aliases: Vec::new(),
    })
}

fn has_expired(update: &TaskStatusUpdate) -> bool {
    let reason = update.metadata.as_ref().and_then(|all| all.get(REASON_KEY)?.read::<String>().ok());
    reason.as_deref() == Some(Reason::InputExpired.as_str())
}

fn raw(json: &[u8]) -> Option<Box<RawValue>> {
    RawValue::from_string(String::from_utf8(json.to_vec()).ok()?).ok()
}

fn cursor_text<S: serde::Serializer>(cursor: &FeedCursor, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(cursor)
}

#[expect(clippy::ref_option, reason = "serde passes a reference")]
fn milliseconds<S: serde::Serializer>(at: &Option<Timestamp>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_i64(at.map_or(0, |at| at.0))
}
