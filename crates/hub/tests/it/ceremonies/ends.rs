//! Who is told of the end of a run, and what is published at its time.

use serde_json::json;

use super::{HOUR, create, lines, runs, server, until};
use crate::running::folder;

#[tokio::test]
async fn an_agent_is_told_of_the_end_of_a_run_once() {
    let data = folder();
    let running = server(data.path()).await;
    create(
        &running,
        "bob",
        json!({
            "id": "report", "name": "Morning report", "at": "2027-01-15T09:00:00Z", "targets": ["echo"],
            "content": "all is well", "notify": [{ "agent": "other" }],
        }),
    )
    .await;
    running.clock.advance(HOUR);
    runs(&running, "report", 1).await;
    let told = until(&running, async || {
        let (_, page) = running.get("/api/tasks?agent=other", "ann").await;
        let tasks = page["items"].as_array().unwrap().clone();
        (!tasks.is_empty() && tasks[0]["state"] == "completed").then_some(tasks)
    })
    .await;
    assert_eq!(told.len(), 1);
    assert_eq!(
        (&told[0]["title"], &told[0]["owner"]),
        (&json!("Morning report is completed: ALL IS WELL"), &json!("bob"))
    );
    // What tells of an end is no run, and has none told of its own.
    assert_eq!(lines(&running, "ceremony.%23", 2).await.len(), 2);
    running.stop().await;
}

#[tokio::test]
async fn an_administrator_publishes_and_others_do_not() {
    let data = folder();
    let running = server(data.path()).await;
    let publishing = |id: &str| json!({ "id": id, "at": "2027-01-15T09:00:00Z", "publish": { "topic": "shift.begins", "payload": { "shift": "early" } } });
    create(&running, "ann", publishing("shift")).await;
    let (status, refusal) = running.post("/api/ceremonies/create", "bob", &publishing("mine")).await;
    assert_eq!((status, &refusal["code"]), (403, &json!("FORBIDDEN")), "{refusal}");
    running.clock.advance(HOUR);
    assert_eq!(lines(&running, "shift.begins", 1).await, [json!({ "shift": "early" })]);
    let fired = lines(&running, "ceremony.shift.fired", 1).await;
    assert!(fired[0].get("taskId").is_none(), "{fired:?}");
    running.stop().await;
}
