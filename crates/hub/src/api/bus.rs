//! `GET /api/bus/history` and `GET /api/bus/topology`: what has happened, and who writes and reads which topics, as earlier
//! hubs have it.

use http::{Response, StatusCode};
use serde::Serialize;
use serde_json::{Map, Value, json};
use switchboard_a2a::TaskId;
use switchboard_engine::ids::TaskKey;
use switchboard_engine::store::{IdempotencyScope, TaskRow};
use switchboard_engine::{Address, CallerRole};
use switchboard_server::Body;

use super::chat::correlation_key;
use super::error::ApiError;
use super::feed::{PAGE_BYTES, read_back};
use super::request::ApiRequest;
use super::route::{Parameter, Route};
use crate::feed::{BackwardPage, BackwardQuery, FeedFilter, Item, Logs, View};
use crate::projector::ROW_PASSED;

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

/// Tasks of a tree that are read at a time.
const TREE_TASKS: usize = 1_000;

/// What has happened.
#[derive(Serialize)]
struct History {
    items: Vec<Item>,
    complete: bool,
}

async fn history(mut request: ApiRequest<'_>) -> Result<Response<Body>, ApiError> {
    let limit = request.number("limit", 200, 1..=1_000)?;
    let view = View::of(request.caller());
    let correlation = request.value("correlationId").map(str::to_owned);
    let tree = match &correlation {
        Some(correlation) => root(&request, &view, correlation).await?,
        None => None,
    };
    let history = match tree {
        Some(root) => of_tree(&mut request, &view, &root, limit).await?,
        None => {
            let filter = FeedFilter { correlation, ..FeedFilter::default() };
            let floor = if view.has_role() { 0 } else { request.hub.engine.feed_floor() };
            let (view, filter, max_bytes) = (&view, &filter, PAGE_BYTES);
            let query = BackwardQuery { view, filter, logs: None, before: None, floor, size: limit, max_bytes };
            let BackwardPage { mut items, next, is_whole, .. } = read_back(&mut request, query).await?;
            items.reverse();
            History { items, complete: next.is_none() && is_whole }
        }
    };
    request.answer_reserved(StatusCode::OK, history).await
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

/// The newest items of a tree, oldest first.
async fn of_tree(request: &mut ApiRequest<'_>, view: &View, root: &TaskRow, limit: usize) -> Result<History, ApiError> {
    let (mut tasks, mut after) = (vec![root.key], TaskKey(0));
    loop {
        let some = request.hub.parts.store.tree(root.key, after, TREE_TASKS).await?;
        let Some(last) = some.last() else { break };
        after = last.key;
        tasks.extend(some.iter().map(|task| task.key));
    }
    let (logs, filter) = (Logs::of(tasks), FeedFilter::default());
    // One item more tells whether these are all.
    let (logs, filter, size, floor) = (Some(&logs), &filter, limit + 1, i64::MAX);
    let query = BackwardQuery { view, filter, logs, before: None, floor, size, max_bytes: PAGE_BYTES };
    let BackwardPage { mut items, next, .. } = read_back(request, query).await?;
    let complete = items.len() <= limit && next.is_none();
    items.truncate(limit);
    items.reverse();
    Ok(History { items, complete })
}

/// Topics by their patterns, who writes them, and who reads them within the server.
const TOPICS: [(&str, &str, &[&str]); 27] = [
    ("task.*.*", "kernel", &["projector"]),
    ("outcome.*.*", "kernel", &["projector"]),
    ("inbox.notice.*", "gates", &[]),
    ("inbox.opened.*", "kernel", &["projector"]),
    ("inbox.decided.*", "kernel", &[]),
    ("inbox.expired.*", "kernel", &[]),
    ("inbox.escalated.*", "projector", &[]),
    ("ceremony.*.fired", "ceremonies", &[]),
    ("ceremony.*.skipped", "ceremonies", &[]),
    ("ceremony.*.completed", "projector", &[]),
    ("dispatch.dropped.*", "routing", &["projector"]),
    ("world.state.delta", "projector", &[]),
    ("operator.message", "api", &[]),
    ("hub.agent.*.*", "registry", &[]),
    ("hub.breaker.*.*", "registry", &[]),
    ("hub.ceremony.*.*", "ceremonies", &[]),
    ("hub.route.*.*", "routes", &["projector"]),
    ("hub.channels.changed", "channels", &[]),
    ("hub.config.refused", "registry", &[]),
    ("hub.experiment.resolved.*", "projector", &[]),
    (ROW_PASSED, "projector", &[]),
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
    // A route reads what its pattern fits; here it stands with the pattern as it is written.
    let table = request.hub.routes.table();
    for definition in table.routes.iter().map(|route| &route.definition).filter(|definition| definition.enabled) {
        let (name, topic) = (format!("route:{}", definition.name), definition.topic.as_str());
        part(&name, "subscribes", topic);
        let known = topics.entry(topic).or_insert_with(|| json!({ "publishedBy": [], "subscribedBy": [] }));
        if let Some(readers) = known["subscribedBy"].as_array_mut() {
            readers.push(name.into());
        }
    }
    let plugins: Vec<Value> = parts.into_iter().map(|(_, part)| part).collect();
    Ok(request.answer(StatusCode::OK, &json!({ "topics": topics, "plugins": plugins })))
}
