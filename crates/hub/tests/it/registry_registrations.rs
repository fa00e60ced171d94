//! Agents that are registered over the API.

use serde_json::{Value, json};

use crate::card_server::CardServer;
use crate::running::{Running, folder};

fn problems(refusal: &Value) -> Vec<&str> {
    refusal["problems"].as_array().unwrap().iter().map(|problem| problem["key"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_registration_is_probed_versioned_and_survives_a_restart() {
    let (data, files) = (folder(), folder());
    std::fs::write(files.path().join("agents.yaml"), "agents: [{ name: echo, builtin: echo }]\n").unwrap();
    let far = CardServer::start(&["review"]).await;
    let running = Running::of_workspace(data.path(), files.path(), |_| {}).await;
    let item = json!({ "name": "far", "url": far.url });
    assert_eq!(running.post("/api/agents", "bob", &item).await.0, 403);
    let (status, answer) = running.post("/api/agents", "ann", &item).await;
    assert_eq!((status, answer), (201, json!({ "name": "far", "version": 1 })));
    let (status, refusal) = running.post("/api/agents", "ann", &item).await;
    assert_eq!((status, &refusal["code"]), (409, &json!("EXISTS")));
    let in_file = json!({ "name": "echo", "url": far.url });
    let (status, refusal) = running.post("/api/a2a-endpoints", "ann", &in_file).await;
    assert_eq!((status, &refusal["success"], &refusal["code"]), (409, &json!(false), &json!("IN_FILE")));

    let (_, shown) = running.get("/api/agents/far", "ann").await;
    assert_eq!((&shown["kind"], &shown["source"]), (&json!("url"), &json!("registration")));
    assert_eq!(shown["skills"], json!([{ "id": "review", "name": "review", "from": "card" }]));
    let (_, seen) = running.get("/api/agents/far", "bob").await;
    assert_eq!((&seen["url"], &seen["headers"]), (&Value::Null, &Value::Null), "addresses are for administrators");
    assert_eq!(running.get("/api/agents/far", "cat").await.0, 404, "one that may not be called looks like none");

    let changed = json!({ "name": "far", "url": far.url, "skills": [{ "name": "own", "description": "of ours" }] });
    let put = |item: &Value, version: &str| {
        let (running, item) = (&running, item.to_string());
        let version = format!("If-Match: \"{version}\"");
        async move { running.ask("PUT /api/agents/far", "ann", &[&version], &item).await }
    };
    let (status, refusal) = put(&changed, "7").await;
    assert_eq!((status, &refusal["code"], &refusal["version"]), (412, &json!("VERSION"), &json!(1)));
    assert_eq!(put(&changed, "1").await, (200, json!({ "name": "far", "version": 2 })));
    let (status, refusal) = put(&json!({ "name": "other", "url": far.url }), "2").await;
    assert_eq!((status, problems(&refusal)), (400, vec!["name"]));
    running.stop().await;

    // Another server on the same data, whose file has the name too.
    let running = Running::of_workspace(data.path(), files.path(), |_| {}).await;
    let (_, shown) = running.get("/api/agents/far", "ann").await;
    assert_eq!((&shown["version"], &shown["shadowed"]), (&json!(2), &json!(false)), "{shown}");
    let skills: Vec<_> =
        shown["skills"].as_array().unwrap().iter().map(|skill| (&skill["id"], &skill["from"])).collect();
    assert_eq!(skills, [(&json!("own"), &json!("yaml")), (&json!("review"), &json!("card"))]);
    running.stop().await;
    std::fs::write(files.path().join("agents.yaml"), "agents: [{ name: far, builtin: echo }]\n").unwrap();
    let running = Running::of_workspace(data.path(), files.path(), |_| {}).await;
    let (_, shown) = running.get("/api/agents/far", "ann").await;
    assert_eq!((&shown["kind"], &shown["shadowed"]), (&json!("builtin"), &json!(true)), "a file beats a registration");
    // What has no effect now is said to have none.
    let replaced = running.ask("PUT /api/agents/far", "ann", &["If-Match: \"2\""], &item.to_string()).await;
    assert_eq!(replaced, (200, json!({ "name": "far", "version": 3, "shadowed": true })));
    assert_eq!(running.get("/api/agents/far", "ann").await.1["kind"], "builtin");
    assert_eq!(running.ask("DELETE /api/agents/far", "ann", &[], "").await.0, 204);
    assert_eq!(running.ask("DELETE /api/agents/far", "ann", &[], "").await.0, 409);
    let (_, audit) = running.get("/api/feed?from=oldest&topic=audit.%23", "ann").await;
    let acts: Vec<_> = audit["items"].as_array().unwrap().iter().map(|item| item["topic"].clone()).collect();
    assert_eq!(acts, ["audit.agents.add", "audit.agents.update", "audit.agents.update", "audit.agents.remove"]);
    running.stop().await;
}

#[tokio::test]
async fn what_cannot_be_reached_or_holds_a_secret_is_not_registered() {
    let (data, files) = (folder(), folder());
    let far = CardServer::start(&[]).await;
    let listed = |config: &mut switchboard_host::config::Config| {
        config.hub.registrations.env = vec!["LISTED".to_owned()];
        config.hub.registrations.max = switchboard_host::config::size::Count::new(1);
    };
    let running = Running::of_workspace(data.path(), files.path(), listed).await;
    for (item, wrong) in [
        (json!({ "name": "far", "url": far.url, "bearerEnv": "PATH" }), "bearerEnv"),
        (
            json!({ "name": "far", "url": far.url, "auth": { "scheme": "apiKey", "credentialsEnv": "HOME" } }),
            "apiKeyEnv",
        ),
        (json!({ "name": "far", "url": far.url, "headers": { "X-Api-Key": "abc" } }), "headers.x-api-key"),
        (json!({ "name": "far", "url": far.url, "headers": { "X-Team": "Bearer abc" } }), "headers.x-team"),
        (json!({ "name": "far", "url": far.url, "headers": { "X-Team": "me password=abc" } }), "headers.x-team"),
        (json!({ "name": "far", "url": format!("{}/?token=abc", far.url) }), "url"),
        (json!({ "name": "far", "url": "http://ann:abc@localhost" }), "url"),
        (json!({ "name": "far", "url": far.url, "tls": { "cert": "a.pem", "key": "a.key" } }), "tls"),
        (json!({ "name": "far", "url": far.url, "pol": "1s" }), "pol"),
        // Whatever its value is.
        (json!({ "name": "far", "builtin": "echo" }), "builtin"),
        (json!({ "name": "far", "cli": "claude" }), "cli"),
        (json!({ "name": "Far", "url": far.url }), "name"),
        // `/api/agents/runtime` is a list, and the target `all` stands for every agent.
        (json!({ "name": "runtime", "url": far.url }), "name"),
        (json!({ "name": "all", "url": far.url }), "name"),
    ] {
        let (status, refusal) = running.post("/api/agents", "ann", &item).await;
        assert_eq!((status, problems(&refusal)), (400, vec![wrong]), "{item}: {refusal}");
        assert!(!refusal.to_string().contains("abc"), "a secret is not repeated: {refusal}");
    }
    let (_, roster) = running.get("/api/agents", "ann").await;
    assert!(roster["items"].as_array().unwrap().iter().all(|item| item["name"] != "far"));

    let (status, probed) = running.post("/api/a2a/probe", "ann", &json!({ "url": far.url })).await;
    assert_eq!(
        (status, &probed["data"]["reachable"], &probed["data"]["name"]),
        (200, &json!(true), &json!("Far away"))
    );
    far.fail(true);
    let (status, probed) = running.post("/api/a2a/probe", "ann", &json!({ "url": far.url })).await;
    assert_eq!((status, &probed["data"]["reachable"]), (200, &json!(false)), "{probed}");
    let item = json!({ "name": "far", "url": far.url, "bearerEnv": "LISTED" });
    let (status, refusal) = running.post("/api/agents", "ann", &item).await;
    assert_eq!((status, &refusal["code"]), (502, &json!("UNREACHABLE")), "{refusal}");
    assert_eq!(running.post("/api/agents?force=true", "ann", &item).await.0, 201);
    // A name in use is that, whether anybody answers at the address or not.
    let (status, refusal) = running.post("/api/agents", "ann", &item).await;
    assert_eq!((status, &refusal["code"]), (409, &json!("EXISTS")), "{refusal}");
    let (status, refusal) =
        running.post("/api/agents?force=true", "ann", &json!({ "name": "far2", "url": far.url })).await;
    assert_eq!(status, 400, "the most that may be registered: {refusal}");
    assert_eq!(running.ask("DELETE /api/a2a-endpoints/nothing", "ann", &[], "").await.0, 404);
    running.stop().await;
}
