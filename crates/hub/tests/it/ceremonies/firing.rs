//! What a run is: a task of the owner, at its time, by one agent or several.

use serde_json::json;

use super::{HOUR, MINUTE, create, lines, runs, server, shown, telling, told, until};
use crate::running::folder;

#[tokio::test]
async fn a_run_comes_at_its_time_as_a_task_of_the_owner_and_its_end_is_told() {
    let data = folder();
    let running = server(data.path()).await;
    let daily = create(&running, "bob", telling("daily", "0 9 * * *")).await;
    assert_eq!(daily["next"][0]["at"], "2027-01-15T09:00:00.000Z", "{daily}");
    assert_eq!((daily["next"].as_array().unwrap().len(), &daily["createdBy"]), (5, &json!("bob")));
    create(&running, "bob", telling("half", "30 8 * * *")).await;
    running.clock.advance(30 * MINUTE);
    // What is due later has not run when something is that was due.
    assert_eq!(told(&running, "half", 1).await, ["2027-01-15T08:30:00.000Z"]);
    assert_eq!(runs(&running, "daily", 0).await.len(), 0);
    running.clock.advance(30 * MINUTE);
    let run = runs(&running, "daily", 1).await.remove(0);
    assert_eq!(run["title"], "daily 2027-01-15T09:00:00.000Z", "{run}");
    assert_eq!(
        (&run["agent"], &run["owner"], &run["via"], &run["contextId"]),
        (&json!("echo"), &json!("bob"), &json!("cron"), &json!("ceremony.daily"))
    );
    let fired = lines(&running, "ceremony.daily.fired", 1).await.remove(0);
    assert_eq!(
        (&fired["taskId"], &fired["scheduledAt"], &fired["ceremony"]),
        (&run["taskId"], &json!("2027-01-15T09:00:00.000Z"), &json!("daily"))
    );
    let completed = lines(&running, "ceremony.daily.completed", 1).await.remove(0);
    assert_eq!((&completed["taskId"], &completed["success"]), (&run["taskId"], &json!(true)));
    // They are the owner's, and nobody else's without a role.
    let seen = async |key: &str| {
        let (_, page) = running.get("/api/feed?from=oldest&topic=ceremony.daily.%23", key).await;
        page["items"].as_array().unwrap().len()
    };
    assert_eq!((seen("bob").await, seen("vic").await, seen("bea").await), (2, 2, 0));
    let after = until(&running, async || Some(shown(&running, "daily").await).filter(|it| !it["last"].is_null())).await;
    assert_eq!(
        after["last"],
        json!({ "at": "2027-01-15T09:00:00.000Z", "taskId": run["taskId"], "state": "completed" })
    );
    assert_eq!(after["next"][0]["at"], "2027-01-16T09:00:00.000Z");
    running.stop().await;
}

#[tokio::test]
async fn without_targets_all_who_have_the_skill_run_it_and_it_is_one_run() {
    let data = folder();
    let running = server(data.path()).await;
    create(&running, "ann", json!({ "id": "all", "schedule": "0 9 * * *", "skill": "acting", "content": "hello" }))
        .await;
    create(
        &running,
        "ann",
        json!({ "id": "first", "at": "2027-01-15T09:00:00Z", "targets": ["other", "echo"], "fanout": "failover" }),
    )
    .await;
    running.clock.advance(HOUR);
    let run = runs(&running, "all", 1).await.remove(0);
    assert_eq!((&run["agent"], &run["state"]), (&json!("~fanout"), &json!("completed")), "{run}");
    let (_, tree) = running.get(&format!("/api/tasks/{}/tree", run["taskId"].as_str().unwrap()), "ann").await;
    let mut agents: Vec<&str> =
        tree["children"].as_array().unwrap().iter().map(|node| node["agent"].as_str().unwrap()).collect();
    agents.sort_unstable();
    assert_eq!(agents, ["echo", "other"], "{tree}");
    assert_eq!(runs(&running, "first", 1).await.len(), 1);
    let over = until(&running, async || Some(shown(&running, "first").await).filter(|it| !it["last"].is_null())).await;
    assert_eq!(over["next"], json!([]), "a single time is over");
    running.stop().await;
}

#[tokio::test]
async fn a_run_that_takes_too_long_fails_and_a_task_token_or_a_revoked_key_runs_nothing() {
    let data = folder();
    super::crashes::register_for_nobody(data.path()).await;
    let running = server(data.path()).await;
    create(
        &running,
        "bob",
        json!({ "id": "slow", "at": "2027-01-15T09:00:00Z", "targets": ["echo"], "content": "wait", "timeout": "2m" }),
    )
    .await;
    running.clock.advance(HOUR);
    let skipped = lines(&running, "ceremony.orphan.skipped", 1).await.remove(0);
    assert_eq!(skipped["reason"], "refused");
    assert!(skipped["problem"].as_str().unwrap().contains("revoked"), "{skipped}");
    lines(&running, "ceremony.slow.fired", 1).await;
    running.clock.advance(3 * MINUTE);
    let run = runs(&running, "slow", 1).await.remove(0);
    assert_eq!(run["state"], "failed", "{run}");
    let completed = lines(&running, "ceremony.slow.completed", 1).await.remove(0);
    assert_eq!((&completed["state"], &completed["success"]), (&json!("failed"), &json!(false)));
    running.stop().await;
}

#[tokio::test]
async fn a_manual_run_is_now_and_leaves_the_schedule_as_it_is() {
    let data = folder();
    let running = server(data.path()).await;
    let before = create(&running, "bob", telling("daily", "0 9 * * *")).await;
    let run =
        async |key: &str, headers: &[&str]| running.ask("POST /api/ceremonies/daily/run", key, headers, "{}").await;
    let (status, began) = run("bob", &["Idempotency-Key: one"]).await;
    assert_eq!(status, 202, "{began}");
    let (_, again) = run("bob", &["Idempotency-Key: one"]).await;
    assert_eq!(again["data"]["taskId"], began["data"]["taskId"]);
    assert_eq!(run("oli", &[]).await.0, 202, "an operator may");
    assert_eq!(run("vic", &[]).await.0, 403);
    assert_eq!(run("bea", &[]).await.0, 404);
    let found = runs(&running, "daily", 2).await;
    assert_eq!((found.len(), &found[1]["owner"]), (2, &json!("bob")), "it is sent as the owner");
    assert_eq!(shown(&running, "daily").await["next"], before["next"]);
    let audit = lines(&running, "audit.ceremonies.run", 3).await;
    assert_eq!((&audit[2]["caller"], &audit[2]["subject"]), (&json!("oli"), &json!("daily")));
    running.stop().await;
}
