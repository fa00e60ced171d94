//! What a request has read into memory at once is bounded, however much its caller has stored: counted in rows and bytes.

use std::sync::Arc;

use serde_json::{Value, json};
use switchboard_host::config::Config;

use crate::counted_store::{CountedStore, Counts};
use crate::running::{Running, folder};

/// A piece of a log, and one row that is larger than what is left of it.
const PIECE: usize = (256 << 10) + LARGE_ROW;
/// The message and the answer of a large task, in one row.
const LARGE_ROW: usize = 2 * MESSAGE + 4096;
const MESSAGE: usize = 50_000;
const TASKS: usize = 100;

/// A conversation of a few megabytes and a task of many rows, which a server that began later has not in memory.
async fn stored(data: &std::path::Path) -> (Running, Arc<Counts>, String, String) {
    let before = Running::in_folder(data).await;
    let mut context = Value::Null;
    for _ in 0..TASKS {
        let mut message = json!({ "parts": [{ "text": "x".repeat(MESSAGE) }] });
        if context.is_string() {
            message["contextId"] = context.clone();
        }
        context = before.send_with("bob", "echo", message, &[]).await["contextId"].clone();
    }
    let steps = before.send("bob", "echo", "steps 1000").await["id"].as_str().unwrap().to_owned();
    before.stop().await;
    let (store, counts) = CountedStore::open(data);
    let running = Running::on_store(store, data, Config::default()).await;
    (running, counts, context.as_str().unwrap().to_owned(), steps)
}

fn ids(page: &Value) -> Vec<String> {
    let items = page["items"].as_array().unwrap().iter();
    items.map(|item| format!("{} {}", item["id"].as_str().unwrap(), item["topic"].as_str().unwrap())).collect()
}

/// Every item of a conversation as a key with a role reads it.
async fn all_items(running: &Running, filter: &str) -> Vec<String> {
    let (mut found, mut from) = (Vec::new(), "oldest".to_owned());
    loop {
        let (_, page) = running.get(&format!("/api/feed?{filter}&pageSize=100&from={from}"), "vic").await;
        let next = page["next"].as_str().unwrap().to_owned();
        if next == from {
            return found;
        }
        found.extend(ids(&page));
        from = next;
    }
}

#[tokio::test]
async fn a_page_of_old_logs_reads_little_more_than_it_shows_and_pages_have_every_item_once() {
    let data = folder();
    let (running, counts, context, steps) = stored(data.path()).await;
    for (filter, size) in [(format!("context={context}"), 4), (format!("task={steps}"), 50)] {
        let expected = all_items(&running, &filter).await;
        assert!(expected.len() > 3 * TASKS, "{}", expected.len());
        let (mut found, mut from) = (Vec::new(), "oldest".to_owned());
        counts.take();
        while found.len() < expected.len() {
            let path = format!("/api/feed?{filter}&pageSize={size}&from={from}");
            let (status, page) = running.get(&path, "bob").await;
            let counted = counts.take();
            assert_eq!((status, counted.loads), (200, 0), "no task is read whole: {counted:?}");
            assert!(counted.bytes <= 2 * PIECE && counted.rows <= 2 * 257, "{path} has read {counted:?}");
            found.extend(ids(&page));
            page["next"].as_str().unwrap().clone_into(&mut from);
        }
        assert_eq!(found, expected, "{filter}");
        // The same going back.
        let (mut found, mut before) = (Vec::new(), Some("now".to_owned()));
        while let Some(place) = before {
            let path = format!("/api/feed?{filter}&pageSize={size}&before={place}");
            let (status, page) = running.get(&path, "bob").await;
            let counted = counts.take();
            assert_eq!((status, counted.loads), (200, 0), "no task is read whole: {counted:?}");
            assert!(counted.bytes <= 2 * PIECE && counted.rows <= 2 * 257, "{path} has read {counted:?}");
            found.extend(ids(&page));
            before = page["next"].as_str().map(str::to_owned);
        }
        found.reverse();
        let as_sets = |items: &[String]| items.iter().cloned().collect::<std::collections::BTreeSet<_>>();
        assert_eq!((found.len(), as_sets(&found)), (expected.len(), as_sets(&expected)), "{filter}");
    }
    running.stop().await;
}

#[tokio::test]
async fn a_page_of_large_items_ends_early_with_the_cursor_to_go_on_from() {
    let data = folder();
    let (running, _, context, _) = stored(data.path()).await;
    let filter = format!("context={context}&topic=task.received.%23");
    let expected = all_items(&running, &filter).await;
    assert_eq!(expected.len(), TASKS);
    let (mut found, mut from, mut pages) = (Vec::new(), "oldest".to_owned(), 0);
    while found.len() < expected.len() {
        let (_, page) = running.get(&format!("/api/feed?{filter}&pageSize=100&from={from}"), "bob").await;
        assert!(page.to_string().len() < (4 << 20) + PIECE, "{}", page.to_string().len());
        found.extend(ids(&page));
        page["next"].as_str().unwrap().clone_into(&mut from);
        pages += 1;
    }
    assert_eq!((found, pages), (expected, 2));
    running.stop().await;
}

#[tokio::test]
async fn a_stream_of_old_logs_reads_them_piece_by_piece() {
    let data = folder();
    let (running, counts, context, _) = stored(data.path()).await;
    let expected = all_items(&running, &format!("context={context}")).await;
    counts.take();
    let mut stream = running.stream(&format!("/api/feed?context={context}&from=oldest"), "bob", &[]).await;
    let mut found = Vec::new();
    for _ in 0..expected.len() {
        let frame = stream.next().await;
        found.push(format!("{} {}", frame.data["id"].as_str().unwrap(), frame.event));
    }
    assert_eq!(found, expected);
    let counted = counts.take();
    assert!(counted.loads == 0 && counted.largest <= PIECE, "{counted:?}");
    drop(stream);
    running.stop().await;
}

#[tokio::test]
async fn a_history_of_few_items_reads_little_of_a_long_log() {
    let data = folder();
    let (running, counts, _, steps) = stored(data.path()).await;
    // What the task reports of its work is kept from then on.
    assert!(all_items(&running, &format!("task={steps}")).await.len() > 1000);
    // The projector reads beside it until it is at the end.
    let mut fewest = usize::MAX;
    for _ in 0..20 {
        counts.take();
        let (status, history) = running.get(&format!("/api/bus/history?correlationId={steps}&limit=5"), "bob").await;
        let counted = counts.take();
        let items = history["data"]["items"].as_array().unwrap();
        assert_eq!((status, items.len(), &history["data"]["complete"]), (200, 5, &json!(false)), "{history}");
        assert_eq!(items[4]["topic"], "outcome.echo.-");
        assert!(counted.largest <= PIECE, "{counted:?}");
        fewest = fewest.min(counted.rows);
    }
    assert!(fewest < 800, "{fewest} rows of more than 1,000");
    running.stop().await;
}

#[tokio::test]
async fn a_page_of_a_tree_reads_only_the_tasks_that_it_shows_once_their_cost_is_known() {
    let data = folder();
    let (store, counts) = CountedStore::open(data.path());
    let running = Running::on_store(store, data.path(), Config::default()).await;
    let body = json!({ "message": "pay 2", "targets": ["echo", "other"], "wait": "30s" });
    let (_, task) = running.post("/api/dispatch", "bob", &body).await;
    let path = format!("/api/tasks/{}/tree", task["id"].as_str().unwrap());
    let (_, whole) = running.get(&path, "bob").await;
    assert_eq!(whole["total"]["costUsd"], 4.0, "{whole}");
    // The projector reads beside it until it is at the end.
    let mut fewest = usize::MAX;
    for _ in 0..20 {
        counts.take();
        let (_, root) = running.get(&format!("{path}?pageSize=1"), "bob").await;
        assert_eq!((&root["total"], &root["children"]), (&whole["total"], &json!([])), "{root}");
        fewest = fewest.min(counts.take().reads);
    }
    assert!(fewest <= 4, "the first row and the last one of the root, not those of three tasks: {fewest}");
    running.stop().await;
}

#[tokio::test]
async fn a_large_task_is_shown_whole_to_those_who_may_see_it() {
    let data = folder();
    let running = Running::in_folder(data.path()).await;
    let words = "x".repeat(4 * MESSAGE);
    for (message, state, text) in [
        (format!("ask {words}"), "input_required", "what now?".to_owned()),
        (words.clone(), "completed", words.to_uppercase()),
    ] {
        let task = running.send("bob", "echo", &message).await;
        let id = task["id"].as_str().unwrap();
        let (status, asked) = running.get(&format!("/api/a2a/task/{id}"), "bob").await;
        assert_eq!((status, &asked["data"]["taskState"]), (200, &json!(state.replace('_', "-"))), "{id}");
        assert_eq!((&asked["success"], &asked["data"]["response"]), (&json!(true), &json!(text)), "{id}");
        let (status, shown) = running.get(&format!("/api/tasks/{id}"), "vic").await;
        assert_eq!((status, &shown["state"], &shown["taskId"]), (200, &json!(state), &json!(id)));
        assert_eq!((&shown["task"]["id"], &shown["owner"]), (&json!(id), &json!("bob")));
        assert_eq!(shown["task"]["history"][0]["parts"][0]["text"], json!(message));
        assert_eq!(running.get(&format!("/api/a2a/task/{id}"), "cat").await.0, 404);
    }
    running.stop().await;
}
