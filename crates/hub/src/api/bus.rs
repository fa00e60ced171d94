//! `GET /api/bus/history` and `GET /api/bus/topology`: what has happened, and who writes and reads which topics, as earlier
//! hubs have it.

use http::{Response, StatusCode};
use serde_json::{Map, Value, json};
use switchboard_a2a::TaskId;
use switchboard_engine::ids::TaskKey;
use switchboard_engine::store::{IdempotencyScope, TaskRow};
use switchboard_engine::{Address, CallerRole, Seq};
use switchboard_server::Body;

use super::chat::correlation_key;
use super::error::ApiError;
use super::request::ApiRequest;
use super::route::{Parameter, Route};
use crate::feed::{BackwardPage, BackwardQuery, FeedFilter, Item, View, items, log_rows, read_backward};

pub(super) const HISTORY: Route =
    Route::get("/api/bus/history", "The newest items of the feed, oldest first", |request| Box::pin(history(request)))
        .enveloped()
        .parameters(&[
            Parameter::new("correlationId", "Only what belongs to it: the task that it names and all below it."),
            Parameter::new("limit", "At most so many items, 1 to 1000; 200 by default.").integer(),
        ]);
pub(super) const TOPOLOGY: Route =
    Route::get("/api/bus/topology", "Topics, who writes them and who reads them", |request| {
        Box::pin(topology(request))
    })
    .role(CallerRole::Viewer)
    .enveloped();

/// Tasks of a tree that are read at a time, and what is read of their logs in all.
const TREE_TASKS: usize = 1_000;
const TREE_BYTES: usize = 16 << 20;

async fn history(request: ApiRequest<'_>) -> Result<Response<Body>, ApiError> {
    let limit = request.number("limit", 200, 1..=1_000)?;
    let view = View::of(request.caller());
    let correlation = request.value("correlationId");
    let tree = match correlation {
        Some(correlation) => root(&request, &view, correlation).await?,
        None => None,
    };
    let (found, is_complete) = match tree {
        Some(root) => of_tree(&request, &view, root, limit).await?,
        None => {
            let filter = FeedFilter { correlation: correlation.map(str::to_owned), ..FeedFilter::default() };
            let floor = if view.has_role() { 0 } else { request.hub.engine.feed_floor() };
            let query = BackwardQuery { view: &view, filter: &filter, before: None, floor, size: limit };
            let BackwardPage { mut items, next, is_whole } = read_backward(request.hub, &query).await?;
            items.reverse();
            (items, next.is_none() && is_whole)
        }
    };
    Ok(request.answer(StatusCode::OK, &json!({ "items": found, "complete": is_complete })))
}

/// The task that a correlation id names: by its own id, or because it was sent with it.
async fn root(request: &ApiRequest<'_>, view: &View, correlation: &str) -> Result<Option<TaskRow>, ApiError> {
    let store = &request.hub.parts.store;
    let mut row = store.row(&TaskId::from(correlation)).await?;
    if row.is_none() {
        let scope = IdempotencyScope {
            owner: request.caller().id.clone(),
            address: Address::Root.as_str().to_owned(),
            key: correlation_key(correlation),
        };
        if let Some(id) = store.find_send(scope).await?.and_then(|sent| sent.task) {
            row = store.row(&id).await?;
        }
    }
    Ok(row.filter(|row| !row.state.hidden && view.sees_task(&row.task)))
}

/// The items of a tree, oldest first, and whether they are all.
async fn of_tree(
    request: &ApiRequest<'_>,
    view: &View,
    root: TaskRow,
    limit: usize,
) -> Result<(Vec<Item>, bool), ApiError> {
    let (hub, filter) = (request.hub, FeedFilter::default());
    let (mut found, mut is_complete, mut bytes) = (Vec::new(), true, 0);
    let mut tasks = vec![root.clone()];
    let mut after = TaskKey(0);
    loop {
        for task in &tasks {
            let (rows, is_whole) = log_rows(hub, task, TREE_BYTES - bytes).await?;
            is_complete &= is_whole;
            for row in &rows {
                bytes = (bytes + row.size()).min(TREE_BYTES);
                found.extend(items(hub, view, &filter, row, Seq(0)).await?);
            }
        }
        tasks = hub.parts.store.tree(root.key, after, TREE_TASKS).await?;
        let Some(last) = tasks.last() else { break };
        after = last.key;
    }
    // Stable: what an event means stays behind it.
    found.sort_by_key(|item: &Item| item.id.position);
    if found.len() > limit {
        found.drain(..found.len() - limit);
        is_complete = false;
    }
    Ok((found, is_complete))
}

/// Topics by their patterns, who writes them, and who reads them within the server.
const TOPICS: [(&str, &str, &[&str]); 18] = [
    ("task.*.*", "kernel", &["projector"]),
    ("outcome.*.*", "kernel", &["projector"]),
    ("inbox.opened.*", "kernel", &["projector"]),
    ("inbox.decided.*", "kernel", &[]),
    ("inbox.expired.*", "kernel", &[]),
    ("dispatch.dropped.*", "routing", &["projector"]),
    ("world.state.delta", "projector", &[]),
    ("operator.message", "api", &[]),
    ("hub.agent.*.*", "registry", &[]),
    ("hub.breaker.*.*", "registry", &[]),
    ("hub.config.refused", "registry", &[]),
    ("hub.experiment.resolved.*", "projector", &[]),
    ("remote.orphaned.*", "jobs", &[]),
    ("webhook.*.*", "webhooks", &[]),
    ("alert.*.fired", "projector", &[]),
    ("alert.*.resolved", "projector", &[]),
    ("audit.#", "api", &[]),
    ("#", "publish", &[]),
];

async fn topology(request: ApiRequest<'_>) -> Result<Response<Body>, ApiError> {
    let mut topics = Map::new();
    let mut parts: Map<String, Value> = Map::new();
    let mut part = |name: &str, member: &str, topic: &str| {
        let known = parts.entry(name).or_insert_with(|| json!({ "name": name, "publishes": [], "subscribes": [] }));
        if let Some(list) = known[member].as_array_mut() {
            list.push(topic.into());
        }
    };
    for (topic, writer, readers) in TOPICS {
        part(writer, "publishes", topic);
        readers.iter().for_each(|reader| part(reader, "subscribes", topic));
        topics.insert(topic.to_owned(), json!({ "publishedBy": [writer], "subscribedBy": readers }));
    }
    let plugins: Vec<Value> = parts.into_iter().map(|(_, part)| part).collect();
    Ok(request.answer(StatusCode::OK, &json!({ "topics": topics, "plugins": plugins })))
}
