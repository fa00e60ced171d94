//! Rows of tasks as operators and owners see them: which of them a key may see, and what is shown of each.

use std::collections::HashMap;

use serde_json::{Value, json};
use switchboard_a2a::TaskStatusUpdate;
use switchboard_engine::event::{Event, Received};
use switchboard_engine::store::survey::SurveyQuery;
use switchboard_engine::store::{ListPosition, StoreError, TaskRow};
use switchboard_engine::{AgentName, AgentScope, Caller, CallerId, CallerRole, Scopes, Seq, state_label};

use crate::feed::{View, is_own};
use crate::health::Outcome;
use crate::hub::HubState;

/// How many rows are looked at for one page; a page of which nearly all are left out ends early.
const READ_ROWS: usize = 100;
const READS: usize = 16;
/// What is shown of a first message, in characters.
const TITLE: usize = 120;

/// The names of callers' keys by their ids.
pub(crate) struct CallerNames(HashMap<String, String>);

impl CallerNames {
    pub(crate) async fn read(hub: &HubState) -> Result<Self, StoreError> {
        let keys = hub.parts.store.list_keys().await?;
        Ok(Self(keys.into_iter().map(|key| (key.id, key.name)).collect()))
    }

    /// Names a caller in a member, with its key's name beside it.
    pub(crate) fn put(&self, shown: &mut Value, member: &str, caller: &CallerId) {
        shown[member] = caller.as_str().into();
        if let Some(name) = self.0.get(caller.as_str()) {
            shown[format!("{member}Name")] = name.as_str().into();
        }
    }
}

/// Which tasks a caller may ask for: its own, with a role those of its agents. One agent of them if it names one.
pub(crate) fn visible(view: &View, owner: Option<CallerId>, agent: Option<AgentName>) -> SurveyQuery {
    let caller = view.caller();
    let owner = if view.has_role() { owner } else { Some(caller.id.clone()) };
    let scope = &caller.scopes.agents;
    // What the hub's agents do for it is its own, whichever agents it may call.
    let own = Some(caller.id.clone()).filter(|_| scope.names().is_some());
    match (agent, scope.names()) {
        (Some(agent), _) if is_own(&agent) && !view.sees_agent(&agent) => {
            let is_of_another = owner.as_ref().is_some_and(|owner| *owner != caller.id);
            let agents = Some(if is_of_another { Vec::new() } else { vec![agent] });
            SurveyQuery { owner: Some(caller.id.clone()), agents, ..SurveyQuery::default() }
        }
        (Some(agent), _) => {
            let agents = Some(scope.allows(&agent).then_some(agent).into_iter().collect());
            SurveyQuery { owner, agents, ..SurveyQuery::default() }
        }
        (None, names) => {
            let agents = names.map(<[AgentName]>::to_vec);
            SurveyQuery { owner, agents, own, ..SurveyQuery::default() }
        }
    }
}

/// So many rows that are wanted, and where the next page begins.
pub(crate) async fn scan(
    hub: &HubState,
    mut query: SurveyQuery,
    size: usize,
    is_wanted: impl Fn(&TaskRow) -> bool,
) -> Result<(Vec<TaskRow>, Option<ListPosition>), StoreError> {
    query.page_size = READ_ROWS;
    let mut found: Vec<TaskRow> = Vec::new();
    for _ in 0..READS {
        let page = hub.parts.store.survey(query.clone()).await?;
        for row in page.tasks.into_iter().filter(&is_wanted) {
            // Only one more that is wanted makes another page.
            if found.len() >= size {
                let next = found.last().map(|last| (last.state.status_at, last.key));
                return Ok((found, next));
            }
            found.push(row);
        }
        query.after = page.next;
        if query.after.is_none() {
            break;
        }
    }
    Ok((found, query.after))
}

/// A task as a list shows it.
pub(crate) async fn shown(hub: &HubState, names: &CallerNames, row: &TaskRow) -> Result<Value, StoreError> {
    let task = &row.task;
    let mut shown = json!({
        "taskId": task.id,
        "contextId": task.context,
        "agent": task.agent.as_str(),
        "state": state_label(row.state.state),
        "at": row.state.status_at.to_string(),
        "via": task.lineage.via.name(),
        "bytes": row.bytes,
    });
    names.put(&mut shown, "owner", &task.owner);
    let log = hub.parts.store.read(row.key, Seq(0), 1).await?;
    let Some(first) = log.first() else { return Ok(shown) };
    if let Some(origin) = hub.traces.origin(row.key, task, first).await? {
        shown["receivedAt"] = origin.received_at.to_string().into();
        shown["correlationId"] = origin.correlation.as_str().into();
        for (member, value) in [("parent", &origin.parent), ("skill", &origin.skill)] {
            if let Some(value) = value {
                shown[member] = value.as_str().into();
            }
        }
    }
    if let Some(Ok(Event::Received(received))) = first.line(Seq(1)).map(Event::decode) {
        let text = received.message.joined_text();
        let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
        shown["title"] = line.chars().take(TITLE).collect::<String>().into();
        if let Some(routing) = decided(&received) {
            shown["routing"] = routing;
        }
    }
    Ok(shown)
}

/// Why a task came to its agent, as routing has stored it with the first message; nothing if that is gone.
pub(crate) async fn routing(hub: &HubState, row: &TaskRow) -> Result<Option<Value>, StoreError> {
    let log = hub.parts.store.read(row.key, Seq(0), 1).await?;
    let first = log.first().and_then(|first| first.line(Seq(1)));
    Ok(match first.map(Event::decode) {
        Some(Ok(Event::Received(received))) => decided(&received),
        _ => None,
    })
}

fn decided(received: &Received) -> Option<Value> {
    received.routing.as_ref()?.read().ok()
}

/// How a task ended and what became of it; nothing if it has not ended.
pub(crate) async fn outcome(hub: &HubState, row: &TaskRow) -> Result<Option<(Outcome, TaskStatusUpdate)>, StoreError> {
    if !row.state.state.is_terminal() {
        return Ok(None);
    }
    // The terminal event is the last one.
    let log = hub.parts.store.read(row.key, Seq(row.last_seq.0.saturating_sub(1)), 1).await?;
    for events in log.iter().rev() {
        let end = events.lines().find_map(|(_, line)| match Event::decode(line) {
            Ok(Event::StatusUpdate(update)) if update.status.state.is_terminal() => Some(update),
            _ => None,
        });
        let Some(end) = end else { continue };
        let Some(origin) = hub.traces.origin(row.key, &row.task, events).await? else { return Ok(None) };
        let outcome = Outcome::read(hub, row.key, &row.task, &origin, events, &end).await?;
        return Ok(Some((outcome, end)));
    }
    Ok(None)
}

/// A caller who reads a task in the name of its owner, once it is known that it may be shown.
pub(crate) fn owner_of(row: &TaskRow) -> Caller {
    let scopes = Scopes { agents: AgentScope::All, role: CallerRole::None };
    Caller { id: row.task.owner.clone(), scopes }
}
