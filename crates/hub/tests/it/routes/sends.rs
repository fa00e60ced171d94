//! Messages: what they say, who sends them, and what they inherit of what has triggered them.

use serde_json::{Value, json};

use super::{first_message, route, sent, server, shown, to_agent, until};
use crate::counted_store::CountedStore;
use crate::health::left_behind;
use crate::running::{Running, folder};

#[tokio::test]
async fn a_failure_becomes_a_message_with_the_work_and_the_chain_of_its_task() {
    let data = folder();
    let running = server(data.path()).await;
    let content = "{{ agent }} has {{ state }}: {{ text }} ({{ topic }}, {{ payload.statusUpdate.status.state }})";
    let definition = json!({
        "name": "mend", "when": { "topic": "task.failed.*", "agent": "echo" }, "then": { "targets": "other" },
        "content": content,
    });
    route(&running, definition).await;
    route(&running, json!({ "name": "raw", "when": { "topic": "outcome.echo.acting", "state": "failed" }, "then": { "skill": "acting", "targets": ["other"] } })).await;
    // Neither of these is what they are about.
    running.send("bob", "echo", "hello").await;
    running.send("bob", "other", "fail").await;
    let message = json!({ "parts": [{ "text": "fail" }], "metadata": { "skill": "acting" } });
    let failed = running.send_with("bob", "echo", message, &["X-Correlation-Id: work-7"]).await;
    let tasks = sent(&running, 2).await;
    assert_eq!(tasks.len(), 2, "{tasks:?}");
    let mut messages = Vec::new();
    for task in &tasks {
        assert_eq!((&task["agent"], &task["owner"]), (&json!("other"), &json!("ann")), "{task}");
        messages.push(first_message(&running, task).await);
    }
    messages.sort_by_key(|item| item["payload"]["message"]["parts"].as_array().unwrap().len());
    for item in &messages {
        assert_eq!((&item["correlationId"], &item["parentId"]), (&json!("work-7"), &failed["id"]), "{item}");
        let metadata = &item["payload"]["message"]["metadata"];
        let chain = &metadata["urn:switchboard:a2a:delegation:v1"];
        assert_eq!((&chain["root"]["task"], &chain["hops"][0]["agent"]), (&failed["id"], &json!("echo")), "{item}");
        assert_eq!((chain["hops"].as_array().unwrap().len(), &chain["deadline"]), (1, &Value::Null));
    }
    let texts: Vec<&Value> = messages.iter().map(|item| &item["payload"]["message"]["parts"][0]["text"]).collect();
    assert_eq!(texts[0], "echo has failed: as it was told to (task.failed.echo, TASK_STATE_FAILED)");
    assert_eq!(texts[1], "outcome.echo.acting (route raw)");
    let handed = &messages[1]["payload"]["message"]["parts"][1]["data"];
    assert_eq!(
        (&handed["topic"], &handed["payload"]["success"]),
        (&json!("outcome.echo.acting"), &json!(false)),
        "{handed}"
    );
    assert_eq!(messages[0]["payload"]["message"]["metadata"]["switchboard/routes"], json!(["mend"]));
    running.stop().await;
}

#[tokio::test]
async fn what_cannot_be_sent_is_given_up_and_said() {
    let data = folder();
    let running = server(data.path()).await;
    route(&running, to_agent("lost", "task.failed.#", "nobody")).await;
    running.send("bob", "echo", "fail").await;
    let line = super::lines(&running, "hub.route.dropped.lost", 1).await;
    assert_eq!((&line[0]["events"], &line[0]["route"]), (&json!(1), &json!("lost")), "{line:?}");
    let seen =
        until(&running, async || Some(shown(&running, "lost", "vic").await).filter(|seen| seen["owed"] == 0)).await;
    assert!(seen["lastError"]["problem"].as_str().unwrap().contains("nobody"), "{seen}");
    assert_eq!(seen["failing"], true);
    let alert = super::lines(&running, "alert.route_failing.fired", 1).await;
    assert_eq!(alert[0]["subject"], "lost");
    // Once it can be sent, the alert is over.
    let mended = to_agent("lost", "task.failed.#", "other").to_string();
    assert_eq!(running.ask("PUT /api/routes/lost", "ann", &[], &mended).await.0, 200);
    running.send("bob", "echo", "fail").await;
    assert_eq!(sent(&running, 1).await.len(), 1);
    super::lines(&running, "alert.route_failing.resolved", 1).await;
    running.stop().await;
}

#[tokio::test]
async fn a_message_that_was_sent_before_a_kill_is_the_same_task_after_it() {
    let data = folder();
    let (store, counts) = CountedStore::open(data.path());
    let mut config = switchboard_host::config::Config::default();
    super::configure(&mut config);
    let running = Running::on_store(store, data.path(), config.clone()).await;
    route(&running, to_agent("mend", "task.failed.#", "other")).await;
    // Pages that could not be read at first are read again.
    running.unreadable.set(2);
    counts.keep_jobs(true);
    running.send("bob", "echo", "fail").await;
    running.send("bob", "echo", "fail").await;
    until(&running, async || {
        let (_, page) = running.get("/api/tasks?via=route", "ann").await;
        let is_owed = shown(&running, "mend", "ann").await["owed"] == 2;
        (is_owed && !page["items"].as_array().unwrap().is_empty()).then_some(())
    })
    .await;
    assert_eq!(shown(&running, "mend", "ann").await["owed"], 2, "what was sent is still owed");
    // Killed here, where a message is sent and the hit not deleted.
    let killed = left_behind(data.path());
    let restarted = super::server(killed.path()).await;
    assert_eq!(sent(&restarted, 2).await.len(), 2, "one for each failure");
    restarted.stop().await;
    // The same in a process that goes on.
    counts.keep_jobs(false);
    assert_eq!(sent(&running, 2).await.len(), 2);
    running.stop().await;
    let again = super::server(data.path()).await;
    assert_eq!(sent(&again, 2).await.len(), 2, "what was read is not read again");
    again.stop().await;
}

#[tokio::test]
async fn lines_of_the_journal_and_the_hubs_own_agents_count_where_they_are_named() {
    let data = folder();
    let running = server(data.path()).await;
    route(&running, to_agent("deploys", "deploy.*.done", "other")).await;
    route(&running, to_agent("any", "task.completed.#", "other")).await;
    let named = json!({
        "name": "fans", "when": { "topic": "task.completed.#", "agent": "~fanout" }, "then": { "targets": ["other"] },
        "content": "a fan-out is done",
    });
    route(&running, named).await;
    let published =
        json!({ "topic": "deploy.web.done", "payload": { "message": "v7 is out" }, "correlationId": "rel-7" });
    assert_eq!(running.post("/publish", "ann", &published).await.0, 202);
    let tasks = sent(&running, 1).await;
    let item = first_message(&running, &tasks[0]).await;
    assert_eq!(
        (&item["correlationId"], &item["payload"]["message"]["parts"][1]["data"]["payload"]["message"]),
        (&json!("rel-7"), &json!("v7 is out")),
        "{item}"
    );
    // A fan-out is no task of an agent; its children are.
    let fanned = json!({ "message": "hello", "targets": ["echo", "other"], "wait": "0s" });
    let (status, answer) = running.post("/api/dispatch", "bob", &fanned).await;
    assert!(status == 200 || status == 202, "{answer}");
    let mut texts = Vec::new();
    for task in &sent(&running, 6).await {
        let item = first_message(&running, task).await;
        texts.push(item["payload"]["message"]["parts"][0]["text"].as_str().unwrap().to_owned());
    }
    texts.sort();
    let right = [
        "a fan-out is done",
        "deploy.web.done (route deploys)",
        "task.completed.echo (route any)",
        // The other child, and what the two routes above have caused.
        "task.completed.other (route any)",
        "task.completed.other (route any)",
        "task.completed.other (route any)",
    ];
    assert_eq!(texts, right);
    running.stop().await;
}
