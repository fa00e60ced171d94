//! Who may create, see, change and delete a ceremony, and how many there may be.

use serde_json::{Value, json};
use switchboard_host::config::size::Count;

use super::{create, lines, server, server_at, shown, telling};
use crate::running::{Running, START, folder};

async fn ids(running: &Running, query: &str, key: &str) -> Vec<String> {
    let (status, page) = running.get(&format!("/api/ceremonies{query}"), key).await;
    assert_eq!(status, 200, "{page}");
    page["data"]["items"].as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap().to_owned()).collect()
}

/// What is refused: the status, the code and the members that are wrong.
async fn refused(running: &Running, path: &str, key: &str, body: &Value) -> (u16, String, Vec<String>) {
    let (status, answer) = running.post(path, key, body).await;
    let problems = answer["problems"].as_array().map(Vec::as_slice).unwrap_or_default();
    let keys = problems.iter().map(|problem| problem["key"].as_str().unwrap().to_owned()).collect();
    (status, answer["code"].as_str().unwrap_or_default().to_owned(), keys)
}

#[tokio::test]
async fn a_ceremony_belongs_to_who_has_created_it_and_administrators_may_change_all() {
    let data = folder();
    let running = server(data.path()).await;
    create(&running, "bob", telling("daily", "0 9 * * *")).await;
    create(&running, "bea", telling("weekly", "0 9 * * MON")).await;
    assert_eq!(
        (ids(&running, "", "bob").await, ids(&running, "", "bea").await),
        (vec!["daily".into()], vec!["weekly".into()])
    );
    assert_eq!(ids(&running, "?all=true", "vic").await, ["daily", "weekly"]);
    assert_eq!(ids(&running, "?all=true&pageSize=1&after=daily", "ann").await, ["weekly"]);
    assert_eq!(running.get("/api/ceremonies?all=true", "bob").await.0, 403);
    // One key for some agents sees those for these agents.
    assert_eq!(ids(&running, "?all=true", "eva").await, ["daily", "weekly"]);
    create(&running, "bob", json!({ "id": "wide", "schedule": "@daily", "skill": "acting" })).await;
    assert_eq!(ids(&running, "?all=true", "eva").await, ["daily", "weekly"]);
    // What is foreign looks like nothing; who may see it is told that it may not.
    for (path, body) in [("update", json!({ "enabled": false })), ("delete", json!({})), ("run", json!({}))] {
        let path = format!("/api/ceremonies/daily/{path}");
        assert_eq!(refused(&running, &path, "bea", &body).await.0, 404, "{path}");
        assert_eq!(refused(&running, &path, "vic", &body).await.0, 403, "{path}");
    }
    assert_eq!(
        (running.get("/api/ceremonies/daily", "bea").await.0, running.get("/api/ceremonies/daily/runs", "bea").await.0),
        (404, 404)
    );
    let update = "/api/ceremonies/daily/update";
    assert_eq!(
        refused(&running, update, "oli", &json!({ "enabled": false })).await.0,
        403,
        "an operator runs and changes nothing"
    );
    // An administrator changes it, and it stays the owner's.
    let (status, changed) = running.post(update, "ann", &json!({ "schedule": "0 10 * * *" })).await;
    assert_eq!(
        (status, &changed["data"]["createdBy"], &changed["data"]["version"]),
        (200, &json!("bob"), &json!(2)),
        "{changed}"
    );
    for (member, value) in [("createdBy", "bea"), ("id", "other")] {
        let (status, code, keys) = refused(&running, update, "ann", &json!({ member: value })).await;
        assert_eq!((status, code.as_str(), keys), (400, "INVALID", vec![member.to_owned()]));
    }
    assert_eq!(refused(&running, update, "bob", &json!({})).await, (400, "INVALID".into(), vec!["body".into()]));
    // A single time takes the place of the schedule, and a member goes with null.
    let (_, changed) = running
        .post(update, "bob", &json!({ "at": "2027-02-01T09:00", "timezone": "Europe/Berlin", "content": null }))
        .await;
    let data_of = &changed["data"];
    assert_eq!(
        (&data_of["schedule"], &data_of["content"], &data_of["next"][0]["at"]),
        (&Value::Null, &Value::Null, &json!("2027-02-01T08:00:00.000Z")),
        "{changed}"
    );
    let stale = running.ask(&format!("POST {update}"), "bob", &["If-Match: \"1\""], "{\"enabled\":false}").await;
    assert_eq!((stale.0, &stale.1["code"], &stale.1["version"]), (412, &json!("VERSION"), &json!(3)));
    assert_eq!(running.post("/api/ceremonies/daily/delete", "bob", &json!({})).await.0, 200);
    assert_eq!(running.get("/api/ceremonies/daily", "bob").await.0, 404);
    let audit = lines(&running, "audit.ceremonies.%23", 6).await;
    assert_eq!(
        (&audit[5]["caller"], &audit[5]["before"]["id"], &audit[5]["after"]),
        (&json!("bob"), &json!("daily"), &Value::Null)
    );
    running.stop().await;
    // What was stored is there again.
    let running = server(data.path()).await;
    assert_eq!(ids(&running, "?all=true", "ann").await, ["weekly", "wide"]);
    assert_eq!(shown(&running, "weekly").await["createdBy"], "bea");
    running.stop().await;
}

#[tokio::test]
async fn a_creation_replaces_nothing_and_names_all_that_is_wrong() {
    let data = folder();
    let running = server(data.path()).await;
    let path = "/api/ceremonies/create";
    create(&running, "bob", telling("daily", "0 9 * * *")).await;
    for key in ["bob", "bea", "ann"] {
        assert_eq!(refused(&running, path, key, &telling("daily", "0 9 * * *")).await.1, "EXISTS");
    }
    let wrong = json!({
        "id": "no id", "schedule": "61 9 * * *", "timezone": "Europe/Berlin", "skill": 7, "fanout": "some",
        "content": "{{ secret }}", "overlap": "maybe", "timeout": "soon", "surprise": 1,
    });
    let (status, code, keys) = refused(&running, path, "bob", &json!({ "id": "x", "skill": 7 })).await;
    assert_eq!((status, code.as_str(), keys), (400, "INVALID", vec!["skill".to_owned()]));
    let mut wrong = wrong;
    wrong["skill"] = "acting".into();
    let (_, _, mut keys) = refused(&running, path, "bob", &wrong).await;
    keys.sort();
    assert_eq!(keys, ["content", "fanout", "id", "overlap", "schedule", "surprise", "timeout"]);
    for (definition, member) in [
        (json!({ "id": "x", "schedule": "@daily", "timezone": "Europe/Bärlin", "skill": "acting" }), "timezone"),
        (json!({ "id": "x", "schedule": "@daily", "at": "2027-02-01T09:00", "skill": "acting" }), "at"),
        (json!({ "id": "x", "at": "2026-02-01T09:00:00Z", "skill": "acting" }), "at"),
        (json!({ "id": "x", "schedule": "@daily" }), "skill"),
        (json!({ "id": "x", "schedule": "@daily", "targets": ["nobody"] }), "targets"),
        (
            json!({ "id": "x", "schedule": "@daily", "targets": ["echo"], "notify": [{ "webhookEnv": "HOME" }] }),
            "notify[0].webhookEnv",
        ),
        (json!({ "id": "x", "schedule": "@daily", "targets": ["echo"], "notifyChannel": "ops" }), "notifyChannel"),
        (json!({ "id": "x", "schedule": "@daily", "publish": { "topic": "task.failed.echo" } }), "publish.topic"),
    ] {
        let (status, _, keys) = refused(&running, path, "ann", &definition).await;
        assert_eq!((status, keys), (400, vec![member.to_owned()]), "{definition}");
    }
    // A key for one agent names no other, and is not told more.
    let foreign = json!({ "id": "x", "schedule": "@daily", "targets": ["other"] });
    assert_eq!(refused(&running, path, "cat", &foreign).await.0, 403);
    let told = json!({ "id": "x", "schedule": "@daily", "targets": ["echo"], "notify": [{ "agent": "other" }] });
    assert_eq!(refused(&running, path, "cat", &told).await.0, 403);
    assert_eq!(ids(&running, "?all=true", "ann").await, ["daily"]);
    running.stop().await;
}

#[tokio::test]
async fn there_are_limits_to_how_many_and_how_often() {
    let data = folder();
    let running = server_at(data.path(), START, |config| {
        (config.hub.ceremonies.max, config.hub.ceremonies.per_owner) = (Count::new(4), Count::new(2));
    })
    .await;
    let path = "/api/ceremonies/create";
    for expression in ["* * * * * *", "*/30 * * * * *", "0,1 0 0 * * *"] {
        let (status, _, keys) = refused(&running, path, "bob", &telling("often", expression)).await;
        assert_eq!((status, keys), (400, vec!["schedule".to_owned()]), "{expression}");
    }
    create(&running, "bob", telling("one", "* * * * *")).await;
    create(&running, "bob", telling("two", "@daily")).await;
    let (status, _, keys) = refused(&running, path, "bob", &telling("three", "@daily")).await;
    assert_eq!((status, keys), (400, vec!["id".to_owned()]));
    // Administrators have the common limit alone.
    create(&running, "ann", telling("three", "* * * * * *")).await;
    create(&running, "ann", telling("four", "@daily")).await;
    assert_eq!(refused(&running, path, "ann", &telling("five", "@daily")).await.0, 400);
    running.stop().await;
}

#[tokio::test]
async fn a_preview_says_when_an_expression_is_due_and_what_the_clocks_do() {
    let data = folder();
    let running = server(data.path()).await;
    let asked = json!({ "schedule": "30 2 28 3 *", "timezone": "Europe/Berlin", "count": 1 });
    let (status, answer) = running.post("/api/cron:preview", "bob", &asked).await;
    let right = json!({ "runs": [{ "at": "2027-03-28T01:00:00.000Z", "local": "2027-03-28T03:00:00+02:00", "dst": "skipped" }] });
    assert_eq!((status, answer), (200, right));
    let (status, answer) = running.post("/api/cron:preview", "bob", &json!({ "schedule": "@hourly" })).await;
    assert_eq!((status, answer["runs"].as_array().unwrap().len()), (200, 5));
    for (asked, member) in [
        (json!({ "schedule": "@hourly", "timezone": "Mars/Base" }), "timezone"),
        (json!({ "schedule": "0 9 31 2 *" }), "schedule"),
        (json!({ "schedule": "@hourly", "count": 101 }), "count"),
    ] {
        let (status, _, keys) = refused(&running, "/api/cron:preview", "bob", &asked).await;
        assert_eq!((status, keys), (400, vec![member.to_owned()]));
    }
    running.stop().await;
}
