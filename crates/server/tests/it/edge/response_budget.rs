//! Clients that ask for much and read nothing: what the server holds for them is bounded, and the other callers go on.

use std::thread::available_parallelism;
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::json;

use crate::edge::running::{Running, request, send_message};
use crate::edge::wire::{PATIENCE, Wire};

const JSON: &str = "Content-Type: application/json";
const ANN: &str = "X-API-Key: a2a_ann";
const BOB: &str = "X-API-Key: a2a_bob";

/// The text of a large task, whose answer holds it again: more than the sender's socket buffer takes.
const LARGE: usize = 3 << 20;
/// More than one answer of a large task, and less than two.
const BUDGET: usize = 10 << 20;
/// Requests whose answers are not read.
const UNREAD: usize = 12;

/// Sends a text to an agent and says which task that is.
async fn sent(running: &Running, agent: &str, key: &str, text: &str) -> String {
    let message = json!({ "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": text }] });
    let body = json!({ "message": message, "configuration": { "returnImmediately": true } }).to_string();
    let reply = running.ask(&format!("POST /a2a/{agent}/message:send"), &[JSON, key], &body).await;
    assert_eq!(reply.status, 200, "{:.200}", reply.body);
    reply.json()["task"]["id"].as_str().unwrap().to_owned()
}

/// Asks many times and reads nothing; goes on when all that cannot be sent yet wait for it.
async fn ask_without_reading(running: &Running, head: &str) -> Vec<Wire> {
    let mut unread = Vec::new();
    for _ in 0..UNREAD {
        let mut wire = running.connect_small().await;
        wire.send(&request(head, &[ANN], "")).await;
        unread.push(wire);
    }
    // What is in flight is at least one answer and at most as many as the budget holds.
    until(running, |_, waiting| waiting >= UNREAD - 4).await;
    unread
}

/// Waits until the bytes in flight and the responses that wait are as they should be.
async fn until(running: &Running, are: impl Fn(usize, usize) -> bool) {
    let load = || (running.responses.bytes(), running.responses.waiting());
    let waiting = async {
        loop {
            let (bytes, waiting) = load();
            assert!(bytes <= BUDGET + LARGE, "{bytes} bytes are in flight, {waiting} responses wait");
            if are(bytes, waiting) {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    let ended = tokio::time::timeout(PATIENCE, waiting).await;
    assert!(ended.is_ok(), "bytes in flight and responses that wait: {:?}", load());
}

/// Whatever another caller does is answered, while unread answers wait.
async fn others_go_on(running: &Running) {
    for round in 0..10 {
        let task = sent(running, "echo", BOB, "small").await;
        let blocking = send_message(1, "SendMessage", "wait for it");
        assert_eq!(running.ask("POST /a2a/echo", &[JSON, BOB], &blocking).await.status, 200);
        assert_eq!(running.ask(&format!("GET /a2a/echo/tasks/{task}"), &[BOB], "").await.status, 200);
        assert_eq!(running.ask("GET /a2a/echo/tasks", &[BOB], "").await.status, 200);
        let (bytes, waiting) = (running.responses.bytes(), running.responses.waiting());
        assert!(waiting >= UNREAD - 4, "round {round}: only {waiting} wait, so nothing was tried");
        assert!(bytes <= BUDGET + LARGE, "round {round}: {bytes} bytes are in flight");
    }
    let large = sent(running, "echo", BOB, &"y".repeat(LARGE)).await;
    // It was not waited for, and is twice as large once it has been answered.
    let answered = async {
        loop {
            let whole = running.ask(&format!("GET /a2a/echo/tasks/{large}"), &[BOB], "").await;
            if whole.status != 200 || whole.body.contains("TASK_STATE_COMPLETED") {
                return whole;
            }
        }
    };
    let whole = tokio::time::timeout(PATIENCE, answered).await.unwrap();
    assert!(whole.status == 200 && whole.body.len() > 2 * LARGE, "{} bytes", whole.body.len());
}

#[tokio::test]
async fn a_caller_that_reads_nothing_waits_and_the_others_go_on() {
    let running = Running::keyed_with(|options| options.response_bytes_per_caller = BUDGET).await;
    let task = sent(&running, "echo", ANN, &"x".repeat(LARGE)).await;
    sent(&running, "echo", ANN, &"x".repeat(LARGE)).await;
    for head in ["GET /a2a/echo/tasks?pageSize=100", &format!("GET /a2a/echo/tasks/{task}")] {
        let mut unread = ask_without_reading(&running, head).await;
        others_go_on(&running).await;
        // Its small answers do not wait for its large ones.
        assert_eq!(running.ask("GET /a2a/echo/tasks/unknown", &[ANN], "").await.status, 404);
        sent(&running, "echo", ANN, "small").await;
        // What waits is not refused: it comes when there is room.
        for reply in join_all(unread.iter_mut().map(Wire::reply)).await {
            assert_eq!(reply.status, 200);
            assert!(reply.body.len() > 2 * LARGE && reply.body.ends_with('}'), "{} bytes", reply.body.len());
        }
        until(&running, |bytes, waiting| (bytes, waiting) == (0, 0)).await;
    }
}

#[tokio::test]
async fn streams_that_begin_with_a_large_task_wait_too() {
    let mut running = Running::keyed_with(|options| options.response_bytes_per_caller = BUDGET).await;
    let task = sent(&running, "gate", ANN, &"x".repeat(2 * LARGE)).await;
    running.began.recv().await.unwrap();
    let mut unread = ask_without_reading(&running, &format!("GET /a2a/gate/tasks/{task}:subscribe")).await;
    others_go_on(&running).await;
    let first_frames = unread.iter_mut().map(|wire| async {
        assert_eq!(wire.head().await.status, 200);
        assert!(wire.chunk().await.unwrap().len() > 2 * LARGE);
    });
    join_all(first_frames).await;
    drop(unread);
    until(&running, |bytes, waiting| (bytes, waiting) == (0, 0)).await;
    running.gate.notify_waiters();
}

#[tokio::test]
async fn a_response_larger_than_the_budget_is_sent_when_nothing_else_is_in_flight() {
    let running = Running::keyed_with(|options| options.response_bytes_per_caller = LARGE).await;
    let task = sent(&running, "echo", ANN, &"x".repeat(LARGE)).await;
    let head = format!("GET /a2a/echo/tasks/{task}");
    let mut first = running.connect_small().await;
    first.send(&request(&head, &[ANN], "")).await;
    until(&running, |bytes, _| bytes > 0).await;
    let mut second = running.connect_small().await;
    second.send(&request(&head, &[ANN], "")).await;
    until(&running, |_, waiting| waiting == 1).await;
    // Which of the two is sent first is not said, so both are read at the same time.
    for reply in join_all([first.reply(), second.reply()]).await {
        assert!(reply.body.len() > 2 * LARGE);
    }
    until(&running, |bytes, waiting| (bytes, waiting) == (0, 0)).await;
}

#[tokio::test]
async fn together_callers_have_no_more_in_flight_than_the_total() {
    let running = Running::keyed_with(|options| options.response_bytes = BUDGET).await;
    let task = sent(&running, "echo", ANN, &"x".repeat(LARGE)).await;
    let large = sent(&running, "echo", BOB, &"y".repeat(2 * LARGE)).await;
    let unread = ask_without_reading(&running, &format!("GET /a2a/echo/tasks/{task}")).await;
    // A large answer of another caller has its turn when there is room again, and small ones do not wait for it.
    let mut waits = running.connect().await;
    waits.send(&request(&format!("GET /a2a/echo/tasks/{large}"), &[BOB], "")).await;
    until(&running, |_, waiting| waiting >= UNREAD - 4).await;
    sent(&running, "echo", BOB, "small").await;
    assert!(waits.reply_at_hand().await.is_none(), "the total is used up");
    drop(unread);
    assert_eq!(waits.reply().await.status, 200);
}

/// A render slot is held until its result is rendered, on a blocking thread: the only one of this runtime is kept busy.
#[test]
fn render_slots_are_few_however_large_the_budget() {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().max_blocking_threads(1).build().unwrap();
    runtime.block_on(async {
        let running = Running::keyed_with(|options| {
            options.response_bytes = usize::MAX;
            options.response_bytes_per_caller = usize::MAX;
        })
        .await;
        // Not a small result, which needs no slot.
        let text = "x".repeat(100 << 10);
        let tasks = [(ANN, sent(&running, "echo", ANN, &text).await), (BOB, sent(&running, "echo", BOB, &text).await)];
        let (release, released) = std::sync::mpsc::channel::<()>();
        let busy = tokio::task::spawn_blocking(move || released.recv());

        let slots = available_parallelism().map_or(1, |cores| cores.get() / 2).max(1);
        let per_caller = (slots / 2).max(1);
        let asked_per_caller = per_caller + 3;
        let mut asked = Vec::new();
        for (key, task) in tasks.iter().flat_map(|task| std::iter::repeat_n(task, asked_per_caller)) {
            let mut wire = running.connect().await;
            wire.send(&request(&format!("GET /a2a/echo/tasks/{task}"), &[key], "")).await;
            asked.push(wire);
        }
        let rendering = slots.min(2 * per_caller);
        until(&running, |_, waiting| waiting == 2 * asked_per_caller - rendering).await;
        drop(release);
        for reply in join_all(asked.iter_mut().map(Wire::reply)).await {
            assert!(reply.status == 200 && reply.body.len() > text.len(), "{} bytes", reply.body.len());
        }
        until(&running, |bytes, waiting| (bytes, waiting) == (0, 0)).await;
        assert!(busy.await.unwrap().is_err());
    });
}

#[tokio::test]
async fn a_stop_does_not_wait_for_responses_that_wait() {
    let mut running = Running::keyed_with(|options| {
        options.response_bytes_per_caller = BUDGET;
        options.write_timeout = Duration::from_secs(3);
    })
    .await;
    let task = sent(&running, "echo", ANN, &"x".repeat(LARGE)).await;
    // A client that reads nothing is cut after the write timeout, and the next takes its turn: none keeps its part for ever.
    let unread: Vec<Wire> = {
        let mut unread = Vec::new();
        for _ in 0..10 {
            let mut wire = running.connect_small().await;
            wire.send(&request(&format!("GET /a2a/echo/tasks/{task}"), &[ANN], "")).await;
            unread.push(wire);
        }
        unread
    };
    let kernel = running.stop_all().await;
    let ended = tokio::time::timeout(PATIENCE, &mut running.serving).await;
    assert!(ended.is_ok_and(|served| served.unwrap().is_ok()), "the server did not stop");
    kernel.await.unwrap().unwrap();
    drop(unread);
    until(&running, |bytes, waiting| (bytes, waiting) == (0, 0)).await;
}
