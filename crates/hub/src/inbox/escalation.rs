//! What the time does to open questions: those that their callers have left unanswered are the operators', and agents whose
//! questions wait so long have an alert.
//!
//! Questions are looked at in the order in which they were asked, from the last one that was told on. That place is in the
//! projector's state, and the lines are written with it, so each question is told of once, whatever process looks.

use std::collections::BTreeSet;
use std::time::Duration;

use bytes::Bytes;
use serde_json::json;
use switchboard_a2a::{TaskState, Timestamp};
use switchboard_engine::clock::{earlier, later};
use switchboard_engine::ids::TaskKey;
use switchboard_engine::store::feed::JournalLine;
use switchboard_engine::store::survey::WaitingQuery;
use switchboard_engine::store::{ListPosition, StoreError, TaskRow};
use switchboard_engine::{AgentName, state_label};

use super::{ItemId, Question, Stage};
use crate::alerts::{Condition, INBOX_WAITING, Noticed};
use crate::feed::segment;
use crate::hub::HubState;
use crate::metric_definitions as metric;

/// Questions of one look, so that no transaction is long.
const LOOK: usize = 128;
/// Between two looks at least.
const PERIOD: Duration = Duration::from_secs(1);

/// What the projector knows of open questions.
#[derive(Default)]
pub(crate) struct InboxWatch {
    /// When they are looked at next.
    look_at: Timestamp,
    /// Agents with a question that has waited for longer than its caller's time.
    waiting: BTreeSet<String>,
    /// Whether there was more than one look takes, or no look since something has happened.
    has_more: bool,
}

/// What has come of a look.
#[derive(Default)]
pub(crate) struct Passed {
    /// The last question that was told of.
    pub(crate) until: Option<ListPosition>,
    pub(crate) lines: Vec<JournalLine>,
    pub(crate) noticed: Vec<Noticed>,
}

impl InboxWatch {
    /// Whether a question of an agent has waited too long, as of the last look.
    pub(crate) fn is_waiting(&self, agent: &str) -> bool {
        self.waiting.contains(agent)
    }

    /// Whether there is more to be told of at once.
    pub(crate) fn has_more(&self) -> bool {
        self.has_more
    }

    /// Looks at questions whose callers' time has passed since the last one that was told of. `alerting` are the agents that
    /// have the alert.
    pub(crate) async fn look(
        &mut self,
        hub: &HubState,
        until: Option<ListPosition>,
        alerting: &[String],
    ) -> Result<Passed, StoreError> {
        let now = hub.parts.clock.now();
        if now < self.look_at {
            self.has_more = true;
            return Ok(Passed { until, ..Passed::default() });
        }
        self.look_at = later(now, PERIOD);
        let passed_before = earlier(now, hub.parts.config.hub.inbox.caller_first.duration());
        let mut passed = Passed { until: until.map(|until| not_after(until, passed_before)), ..Passed::default() };
        let query = WaitingQuery { after: passed.until, max: LOOK, ..WaitingQuery::default() };
        let rows = hub.parts.store.waiting(query).await?;
        self.has_more = rows.len() == LOOK;
        for row in &rows {
            if row.state.status_at > passed_before {
                self.has_more = false;
                break;
            }
            passed.until = Some((row.state.status_at, row.key));
            if let Some(line) = line(hub, row, now).await? {
                passed.lines.push(line);
            }
            passed.noticed.push(waits(row));
        }
        self.waiting = passed.noticed.iter().filter_map(Noticed::agent).map(str::to_owned).collect();
        for agent in alerting {
            if !self.waiting.contains(agent) && is_waiting(hub, agent, passed_before).await? {
                self.waiting.insert(agent.clone());
            }
        }
        measure(hub, passed_before).await?;
        Ok(passed)
    }
}

/// A clock that was set back must not leave questions untold until it comes to where it was.
fn not_after(until: ListPosition, limit: Timestamp) -> ListPosition {
    if until.0 > limit { (limit, TaskKey(i64::MAX)) } else { until }
}

/// The line that says that a question is the operators' now. One that was theirs from the beginning has none.
async fn line(hub: &HubState, row: &TaskRow, now: Timestamp) -> Result<Option<JournalLine>, StoreError> {
    let Some(question) = Question::open(&*hub.parts.store, row).await? else { return Ok(None) };
    let was_callers = Stage::of(&question, &row.task, Duration::MAX, now) == Stage::Caller;
    Ok(was_callers.then(|| escalated(row, &question, "operator", now)))
}

/// Tells that the own time of a question is over, unless it is closed.
pub(crate) async fn tell_escalated(hub: &HubState, id: &ItemId) -> Result<(), StoreError> {
    let store = &*hub.parts.store;
    let Some(row) = store.row(&id.task).await? else { return Ok(()) };
    let open = Question::open(store, &row).await?.filter(|open| open.seq == id.question);
    let Some(question) = open else { return Ok(()) };
    let line = escalated(&row, &question, "escalated", hub.parts.clock.now());
    store.journal(vec![line]).await.map(drop)
}

/// The line of a question that has a new stage.
fn escalated(row: &TaskRow, question: &Question, stage: &str, now: Timestamp) -> JournalLine {
    let task = &row.task;
    let payload = json!({
        "agent": task.agent.as_str(),
        "id": ItemId { task: task.id.clone(), question: question.seq }.to_string(),
        "stage": stage,
        "state": state_label(row.state.state),
        "openedAt": question.asked_at().to_string(),
    });
    JournalLine {
        at: now,
        owner: Some(task.owner.clone()),
        task: Some(task.id.clone()),
        topic: format!("inbox.escalated.{}", segment(task.agent.as_str())),
        payload: Bytes::from(payload.to_string()),
    }
}

fn waits(row: &TaskRow) -> Noticed {
    let agent = row.task.agent.to_string();
    let detail = json!({ "taskId": row.task.id, "since": row.state.status_at.to_string() });
    let subject = agent.clone();
    Noticed::Condition(Condition { alert: INBOX_WAITING, agent: Some(agent), subject, holds: true, detail })
}

/// Whether the oldest question of an agent has waited too long.
async fn is_waiting(hub: &HubState, agent: &str, before: Timestamp) -> Result<bool, StoreError> {
    let agents = Some(vec![AgentName::from(agent)]);
    let oldest = hub.parts.store.waiting(WaitingQuery { agents, max: 1, ..WaitingQuery::default() }).await?;
    Ok(oldest.first().is_some_and(|row| row.state.status_at <= before))
}

/// Sets the gauge.
async fn measure(hub: &HubState, passed_before: Timestamp) -> Result<(), StoreError> {
    let counts = hub.parts.store.count_tasks(None, None).await?;
    let is_open = |state: TaskState| state.is_interrupted();
    let open: u64 = counts.iter().filter(|(state, _)| is_open(*state)).map(|(_, count)| count).sum();
    let callers = hub.parts.store.count_asked_since(passed_before).await?;
    metrics::gauge!(metric::INBOX_OPEN, "stage" => "caller").set(callers as f64);
    metrics::gauge!(metric::INBOX_OPEN, "stage" => "operator").set(open.saturating_sub(callers) as f64);
    Ok(())
}
