//! `GET /api/tasks/{id}/tree`: a task with those that it has started, and what all of them have cost.

use std::collections::HashMap;

use http::{Response, StatusCode};
use serde_json::{Value, json};
use switchboard_a2a::{TaskId, Timestamp};
use switchboard_engine::event::Usage;
use switchboard_engine::fold::USAGE_KEY;
use switchboard_engine::ids::TaskKey;
use switchboard_engine::reason::REASON_KEY;
use switchboard_engine::store::TaskRow;
use switchboard_engine::{Error, Seq, state_label};
use switchboard_server::Body;

use super::error::ApiError;
use super::request::{ApiRequest, wrong};
use super::route::{Parameter, Route};
use super::tasks::read_reserved;
use crate::feed::{TaskCost, View};
use crate::hub::HubState;
use crate::task_rows::{CallerNames, outcome, owner_of};

pub(super) const ROUTE: Route =
    Route::get("/api/tasks/{id}/tree", "Show the tree of a task with its cost", |request| Box::pin(answer(request)))
        .parameters(&[
            Parameter::new("pageSize", "Tasks on a page, 1 to 1000, which it is if absent.").integer(),
            Parameter::new("after", "The task under next of the page before."),
        ]);

/// Tasks on a page, and those that are read at a time.
const PAGE: usize = 1_000;
/// Tasks between a task and its root: more than any limit of depth allows.
const DEEPEST: usize = 1_000;
/// About what a task of the tree has as JSON.
const NODE_BYTES: usize = 512;

/// A task of the tree.
struct Node {
    row: TaskRow,
    own: TaskCost,
    total: TaskCost,
}

/// What is shown of a task of the page besides its row and its cost.
struct Details {
    /// When its first message came.
    began_at: Option<Timestamp>,
    /// Why it ended as it did.
    reason: Option<String>,
}

/// The tasks of a page are read. Of the others, which count in the sums, only the rows are, and what they have cost unless
/// that is known: what has ended costs the same on every page.
async fn answer(mut request: ApiRequest<'_>) -> Result<Response<Body>, ApiError> {
    let size = request.number("pageSize", PAGE, 1..=PAGE)?;
    let mut nodes = nodes(&request).await?;
    let begin = match request.value("after") {
        None => 0,
        Some(id) => {
            let found = nodes.iter().position(|node| node.row.task.id.as_str() == id);
            found.ok_or_else(|| wrong("after", id, "the task under next of the page before"))? + 1
        }
    };
    let end = nodes.len().min(begin.max(1) + size - usize::from(begin == 0));
    let page = begin.max(1)..end;
    let mut details = HashMap::new();
    for (index, node) in nodes.iter_mut().enumerate() {
        let is_shown = index == 0 || page.contains(&index);
        node.own = match request.hub.traces.cost(node.row.key) {
            Some(known) => known,
            None => cost(&mut request, &node.row).await?,
        };
        node.total = node.own;
        if is_shown && View::of(request.caller()).sees_task(&node.row.task) {
            details.insert(index, read_details(request.hub, &node.row).await?);
        }
    }
    sum(&mut nodes);
    let names = CallerNames::read(request.hub).await?;
    request.reserve((NODE_BYTES * (page.len() + 1)) as u64).await?;
    let mut tree = nest(&request, &names, &nodes, &details, page);
    if end < nodes.len() {
        tree["next"] = json!(nodes.get(end - 1).map(|last| &last.row.task.id));
    }
    request.answer_reserved(StatusCode::OK, tree).await
}

/// The tasks of the tree by their rows: the root, then the others as they were begun.
async fn nodes(request: &ApiRequest<'_>) -> Result<Vec<Node>, ApiError> {
    let node = |row| Node { row, own: TaskCost::default(), total: TaskCost::default() };
    let root = root(request).await?;
    let (key, mut after) = (root.key, TaskKey(0));
    let mut nodes = vec![node(root)];
    loop {
        let rows = request.hub.parts.store.tree(key, after, PAGE).await?;
        let Some(last) = rows.last() else { return Ok(nodes) };
        after = last.key;
        nodes.extend(rows.into_iter().map(node));
    }
}

/// The root of the tree that the task is in. It is for the root's owner, and for those who see the root's agent.
async fn root(request: &ApiRequest<'_>) -> Result<TaskRow, ApiError> {
    let id = TaskId::from(request.variable("id"));
    let missing = || ApiError::Engine(Error::TaskNotFound(id.clone()));
    let row = request.hub.parts.store.row(&id).await?.ok_or_else(missing)?;
    let root = match row.task.is_child() {
        true => request.hub.parts.store.ancestors(row.key, DEEPEST).await?.pop().unwrap_or(row),
        false => row,
    };
    let is_seen = !root.state.hidden && View::of(request.caller()).sees_task(&root.task);
    if is_seen { Ok(root) } else { Err(missing()) }
}

/// What a task itself has cost. The log of one that goes on is read within the caller's response budget, and only where the
/// task is not in memory.
async fn cost(request: &mut ApiRequest<'_>, row: &TaskRow) -> Result<TaskCost, ApiError> {
    let hub = request.hub;
    if let Some((outcome, _)) = outcome(hub, row).await? {
        let usage = Usage {
            input_tokens: outcome.input_tokens.unwrap_or(0),
            output_tokens: outcome.output_tokens.unwrap_or(0),
            cost_usd: outcome.cost_usd.unwrap_or(0.0),
        };
        let cost = TaskCost { usage: usage.clamped(), is_estimated: outcome.estimated };
        hub.traces.keep_cost(row.key, cost);
        return Ok(cost);
    }
    let so_far = |usage: Usage| TaskCost { usage: usage.clamped(), is_estimated: false };
    if let Some(usage) = hub.engine.usage_in_memory(&row.task.id) {
        return Ok(so_far(usage));
    }
    let task = match read_reserved(request, &owner_of(row), &row.task.id).await {
        Ok(task) => task,
        // It is hidden, was deleted, or cannot be read; the others count all the same.
        Err(ApiError::Engine(_)) => return Ok(TaskCost::default()),
        Err(error) => return Err(error),
    };
    let usage = task.metadata.and_then(|all| all.get(USAGE_KEY)?.read::<Usage>().ok());
    Ok(usage.map(so_far).unwrap_or_default())
}

async fn read_details(hub: &HubState, row: &TaskRow) -> Result<Details, ApiError> {
    let first = hub.parts.store.read(row.key, Seq(0), 1).await?;
    let origin = match first.first() {
        Some(first) => hub.traces.origin(row.key, &row.task, first).await?,
        None => None,
    };
    let end = if row.state.state.is_terminal() { outcome(hub, row).await? } else { None };
    let metadata = end.and_then(|(_, end)| end.metadata);
    let reason = metadata.and_then(|all| all.get(REASON_KEY)?.read().ok());
    Ok(Details { began_at: origin.map(|origin| origin.received_at), reason })
}

/// Adds each task's total to that of the task that has started it. A child comes after its parent, so the sums are whole
/// from the end on.
fn sum(nodes: &mut [Node]) {
    let places = places(nodes);
    for index in (1..nodes.len()).rev() {
        let (before, [child, ..]) = nodes.split_at_mut(index) else { continue };
        let parent = parent_of(&places, child);
        if let Some(parent) = before.get_mut(parent) {
            parent.total.usage = parent.total.usage.plus(child.total.usage);
            parent.total.is_estimated |= child.total.is_estimated;
        }
    }
}

fn places(nodes: &[Node]) -> HashMap<TaskKey, usize> {
    nodes.iter().enumerate().map(|(index, node)| (node.row.key, index)).collect()
}

/// The place of the task that has started it; the root's if that one is gone.
fn parent_of(places: &HashMap<TaskKey, usize>, node: &Node) -> usize {
    let parent = node.row.task.lineage.ancestors.and_then(|ancestors| places.get(&ancestors.parent));
    parent.copied().unwrap_or(0)
}

/// The root with the tasks of a page below it. A task whose parent is on another page stands below the root, and names it.
fn nest(
    request: &ApiRequest<'_>,
    names: &CallerNames,
    nodes: &[Node],
    details: &HashMap<usize, Details>,
    page: std::ops::Range<usize>,
) -> Value {
    let places = places(nodes);
    let mut children: HashMap<usize, Vec<Value>> = HashMap::new();
    for index in page.clone().rev() {
        let Some(node) = nodes.get(index) else { continue };
        let mut value = shown(request, names, node, details.get(&index));
        value["children"] = below(children.remove(&index));
        let parent = parent_of(&places, node);
        if parent != 0 && !page.contains(&parent) {
            value["parent"] = json!(nodes.get(parent).map(|parent| &parent.row.task.id));
        }
        children.entry(if page.contains(&parent) { parent } else { 0 }).or_default().push(value);
    }
    let mut tree = nodes.first().map_or(Value::Null, |root| shown(request, names, root, details.get(&0)));
    tree["children"] = below(children.remove(&0));
    tree
}

/// Children as they were begun; they were gathered from the last to the first.
fn below(children: Option<Vec<Value>>) -> Value {
    let mut children = children.unwrap_or_default();
    children.reverse();
    children.into()
}

/// A task of the tree. Of one that the caller may not see: its agent, its state and its cost.
fn shown(request: &ApiRequest<'_>, names: &CallerNames, node: &Node, details: Option<&Details>) -> Value {
    let row = &node.row;
    let mut value = json!({
        "agent": row.task.agent.as_str(),
        "state": state_label(row.state.state),
        "own": spent(&node.own),
        "total": spent(&node.total),
    });
    let Some(details) = details else { return value };
    value["task"] = json!(row.task.id);
    value["node"] = request.hub.engine.node_id().into();
    value["reason"] = details.reason.clone().into();
    value["at"] = details.began_at.map(|at| at.to_string()).into();
    value["ended"] = row.state.state.is_terminal().then(|| row.state.status_at.to_string()).into();
    names.put(&mut value, "owner", &row.task.owner);
    value
}

fn spent(spent: &TaskCost) -> Value {
    json!({
        "inputTokens": spent.usage.input_tokens,
        "outputTokens": spent.usage.output_tokens,
        "costUsd": spent.usage.cost_usd,
        "estimated": spent.is_estimated,
    })
}
