//! Definitions: over the API and in files, and all that can be wrong with them.

use std::fs;

use serde_json::{Value, json};
use switchboard_engine::Settings;
use switchboard_engine::clock::SimulatedClock;
use switchboard_host::config::size::Count;

use super::{configure, lines, route, server, server_with, shown, to_agent, until};
use crate::running::{Running, START, folder};

#[tokio::test]
async fn a_route_is_registered_read_replaced_and_removed() {
    let data = folder();
    let running = server(data.path()).await;
    let definition = json!({
        "name": "to-chat",
        "when": { "topic": "task.failed.#", "agent": "echo", "state": "failed" },
        "then": { "url": "https://hooks.example.com/services/T0/secret-path" },
        "content": { "text": "{{ source.agent }} failed: {{ text | truncate(200) }}", "color": 7 },
    });
    let added = route(&running, definition.clone()).await;
    assert_eq!((&added["version"], &added["enabled"]), (&json!(1), &json!(true)), "{added}");
    for member in ["name", "when", "then", "content"] {
        assert_eq!(added[member], definition[member]);
    }
    let (status, refusal) = running.post("/api/routes", "ann", &definition).await;
    assert_eq!((status, &refusal["code"]), (409, &json!("EXISTS")), "{refusal}");

    let seen = shown(&running, "to-chat", "ann").await;
    assert_eq!((&seen["owner"], &seen["source"]), (&json!("ann"), &json!("registration")));
    assert_eq!((&seen["owed"], &seen["paused"], &seen["lastError"]), (&json!(0), &json!(false), &Value::Null));
    assert_eq!(seen["then"], definition["then"]);
    // The path of an address may be a secret, so neither a viewer nor the audit repeats it.
    let origin = json!({ "url": "https://hooks.example.com:443" });
    assert_eq!(shown(&running, "to-chat", "vic").await["then"], origin);

    let replacement = json!({ "when": { "topic": "alert.#" }, "then": { "skill": "acting" }, "enabled": false });
    let put = |version: &'static str, body: Value| {
        let running = &running;
        async move { running.ask("PUT /api/routes/to-chat", "nan", &[version], &body.to_string()).await }
    };
    let (status, refusal) = put("If-Match: \"9\"", replacement.clone()).await;
    assert_eq!((status, &refusal["code"], &refusal["version"]), (412, &json!("VERSION"), &json!(1)));
    let (status, answer) = put("If-Match: \"1\"", replacement.clone()).await;
    assert_eq!((status, &answer["data"]["version"], &answer["data"]["name"]), (200, &json!(2), &json!("to-chat")));
    let seen = shown(&running, "to-chat", "ann").await;
    assert_eq!((&seen["owner"], &seen["ownerName"]), (&json!("nan"), &Value::Null), "who writes it answers for it");
    assert_eq!((&seen["enabled"], &seen["content"]), (&json!(false), &Value::Null));
    let (status, refusal) =
        put("X: y", json!({ "name": "other", "when": { "topic": "a" }, "then": { "skill": "a" } })).await;
    assert_eq!((status, &refusal["problems"][0]["key"]), (400, &json!("name")), "{refusal}");
    assert_eq!(running.ask("PUT /api/routes/none", "ann", &[], &replacement.to_string()).await.0, 404);
    assert_eq!(running.ask("DELETE /api/routes/to-chat", "ann", &["If-Match: \"1\""], "").await.0, 412);
    assert_eq!(running.ask("DELETE /api/routes/to-chat", "ann", &[], "").await.0, 204);
    assert_eq!(running.ask("DELETE /api/routes/to-chat", "ann", &[], "").await.0, 404);
    let acts = lines(&running, "audit.routes.%23", 3).await;
    assert_eq!((&acts[0]["caller"], &acts[0]["after"]["then"]), (&json!("ann"), &origin));
    assert_eq!((&acts[1]["before"]["then"], &acts[2]["after"]), (&origin, &Value::Null));
    let topics = running.topics("hub.route.%23", 3).await;
    assert_eq!(topics, ["added", "changed", "removed"].map(|change| format!("hub.route.{change}.to-chat")));
    running.stop().await;
}

#[tokio::test]
async fn what_is_wrong_with_a_definition_is_said_of_each_member() {
    let data = folder();
    let running = server_with(data.path(), |config| {
        config.hub.registrations.env = vec!["LISTED".to_owned()];
        config.hub.routes.max = Count::new(2);
    })
    .await;
    let when = || json!({ "topic": "task.failed.#" });
    let then = || json!({ "skill": "acting" });
    let post = |more: Value| {
        let mut then = json!({ "url": "https://hooks.example.com" });
        then.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({ "name": "a", "when": { "topic": "task.failed.#" }, "then": then })
    };
    let content =
        |then: Value, content: Value| json!({ "name": "a", "when": when(), "then": then, "content": content });
    let topic = |topic: &str| json!({ "name": "a", "when": { "topic": topic }, "then": then() });
    let url = |url: &str| post(json!({ "url": url }));
    for (body, keys) in [
        (json!({}), vec!["name", "when", "then"]),
        (json!({ "name": "a b", "when": { "topic": "a" }, "then": then() }), vec!["name"]),
        (json!({ "name": "x".repeat(65), "when": when(), "then": then() }), vec!["name"]),
        (json!({ "name": "a", "when": when(), "then": then(), "enabld": true }), vec!["enabld"]),
        (json!({ "name": "a", "when": when(), "then": then(), "enabled": "no" }), vec!["enabled"]),
        (topic("#"), vec!["when.topic"]),
        (topic("*"), vec!["when.topic"]),
        (topic("*.failed"), vec!["when.topic"]),
        (topic("task.#.echo"), vec!["when.topic"]),
        (topic("task failed"), vec!["when.topic"]),
        (topic("task.fa*"), vec!["when.topic"]),
        (topic(""), vec!["when.topic"]),
        // What it sends may be refused, which would trigger it again.
        (topic("dispatch.dropped.#"), vec!["when.topic"]),
        (json!({ "name": "a", "when": { "topic": "a", "agnt": "x" }, "then": then() }), vec!["when.agnt"]),
        (json!({ "name": "a", "when": { "topic": "a", "state": "done" }, "then": then() }), vec!["when.state"]),
        (json!({ "name": "a", "when": { "topic": "a", "agent": 7 }, "then": then() }), vec!["when.agent"]),
        (json!({ "name": "a", "when": when(), "then": {} }), vec!["then"]),
        (json!({ "name": "a", "when": when(), "then": { "skill": 1 } }), vec!["then.skill"]),
        (json!({ "name": "a", "when": when(), "then": { "targets": [1] } }), vec!["then.targets"]),
        (json!({ "name": "a", "when": when(), "then": { "targets": [] } }), vec!["then.targets"]),
        (json!({ "name": "a", "when": when(), "then": { "targets": vec!["a"; 65] } }), vec!["then.targets"]),
        (
            json!({ "name": "a", "when": when(), "then": { "skill": "a", "secretEnv": "LISTED" } }),
            vec!["then.secretEnv"],
        ),
        (post(json!({ "skill": "acting" })), vec!["then"]),
        (url("ftp://example.com"), vec!["then.url"]),
        (url("https://user:pass@example.com"), vec!["then.url"]),
        (url("https://example.com?token=abc"), vec!["then.url"]),
        (url("https://example.com\r\nX: y"), vec!["then.url"]),
        (post(json!({ "secretEnv": "HOME" })), vec!["then.secretEnv"]),
        (post(json!({ "secretEnv": "not a name" })), vec!["then.secretEnv"]),
        (content(then(), json!({ "text": "a" })), vec!["content"]),
        (content(json!({ "url": "https://example.com" }), json!("a text")), vec!["content"]),
        (content(then(), json!("{{ nothing }}")), vec!["content"]),
        (content(then(), json!("{% for a in payload %}")), vec!["content"]),
        (content(json!({ "url": "https://example.com" }), json!({ "a": [1, "{{ topic"] })), vec!["content.a[1]"]),
        (content(then(), json!("x".repeat(17 << 10))), vec!["content"]),
        (
            json!({ "name": "a b", "when": { "topic": "#" }, "then": {}, "more": 1 }),
            vec!["more", "name", "when.topic", "then"],
        ),
    ] {
        let (status, refusal) = running.post("/api/routes", "ann", &body).await;
        assert_eq!((status, &refusal["code"]), (400, &json!("INVALID")), "{body}: {refusal}");
        let found: Vec<&str> =
            refusal["problems"].as_array().unwrap().iter().map(|problem| problem["key"].as_str().unwrap()).collect();
        assert_eq!(found, keys, "{body}: {refusal}");
        assert!(refusal["problems"].as_array().unwrap().iter().all(|problem| problem["right"] != ""), "{refusal}");
    }
    // Nothing of all that was stored, nor may others store anything.
    assert_eq!(running.get("/api/routes", "ann").await.1["data"]["items"], json!([]));
    for (key, status) in [("vic", 403), ("oli", 403), ("ada", 403), ("bob", 403)] {
        assert_eq!(running.post("/api/routes", key, &topic("task.failed.#")).await.0, status, "{key}");
    }
    assert_eq!(running.get("/api/routes", "bob").await.0, 403);
    for name in ["one", "two"] {
        route(&running, to_agent(name, "task.failed.#", "echo")).await;
    }
    let (status, refusal) = running.post("/api/routes", "ann", &to_agent("three", "task.failed.#", "echo")).await;
    assert_eq!(status, 400);
    assert!(refusal["error"].as_str().unwrap().contains("hub.routes.max"), "{refusal}");
    running.stop().await;
}

#[tokio::test]
async fn files_are_followed_by_content_and_hide_registrations() {
    let (data, workspace) = (folder(), folder());
    let routes = workspace.path().join("routes.d");
    fs::create_dir(&routes).unwrap();
    let write = |name: &str, text: &str| fs::write(routes.join(name), text).unwrap();
    write("page.yaml", "when: { topic: alert.# }\nthen: { skill: acting }\n");
    write("broken.yaml", "when: { topic: '#' }\nthen: { skill: acting }\n");
    let clock = SimulatedClock::at(START);
    let own = vec![switchboard_engine::Hosted::new("echo", crate::actor::Actor)];
    let running = Running::beside(data.path(), workspace.path(), own, &clock, configure, Settings::default()).await;
    let page = shown(&running, "page", "ann").await;
    assert_eq!((&page["source"], &page["when"]["topic"]), (&json!("file"), &json!("alert.#")), "{page}");
    assert_eq!(shown(&running, "broken", "ann").await, Value::Null);
    let refused = lines(&running, "hub.config.refused", 1).await;
    assert!(refused[0]["problem"].as_str().unwrap().contains("when.topic"), "{refused:?}");
    let body = to_agent("page", "task.failed.#", "echo").to_string();
    for head in ["POST /api/routes", "PUT /api/routes/page", "DELETE /api/routes/page"] {
        let body = if head.starts_with("DELETE") { "" } else { body.as_str() };
        let (status, refusal) = running.ask(head, "ann", &[], body).await;
        assert_eq!((status, &refusal["code"]), (409, &json!("IN_FILE")), "{head}: {refusal}");
    }
    let topic = |name: &'static str, wanted: &'static str| {
        let running = &running;
        until(running, async move || (shown(running, name, "ann").await["when"]["topic"] == wanted).then_some(()))
    };
    // Of the same length; and one that was registered before it is in a file.
    write("page.yaml", "when: { topic: audit.# }\nthen: { skill: acting }\n");
    topic("page", "audit.#").await;
    route(&running, to_agent("late", "task.failed.#", "echo")).await;
    write("late.yaml", "when: { topic: hub.agent.# }\nthen: { skill: acting }\n");
    topic("late", "hub.agent.#").await;
    assert_eq!(shown(&running, "late", "ann").await["shadowsRegistration"], true);
    fs::remove_file(routes.join("late.yaml")).unwrap();
    topic("late", "task.failed.#").await;
    // A bad edit leaves the route as it is.
    write("page.yaml", "when: [");
    let refused = lines(&running, "hub.config.refused", 2).await;
    assert!(refused.last().unwrap()["problem"].as_str().unwrap().contains("page.yaml"), "{refused:?}");
    assert_eq!(shown(&running, "page", "ann").await["when"]["topic"], "audit.#");
    running.stop().await;
}

#[tokio::test]
async fn every_route_of_the_documentation_is_one() {
    let (data, workspace) = (folder(), folder());
    let page = include_str!("../../../../../docs/routes.md");
    let examples = || page.split("```yaml\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let heredocs = || {
        page.split("cat > routes.d/")
            .skip(1)
            .map(|rest| rest.split_once("\n").unwrap().1.split("\nEND").next().unwrap())
    };
    let folder = workspace.path().join("routes.d");
    fs::create_dir(&folder).unwrap();
    for (number, example) in examples().chain(heredocs()).enumerate() {
        // These tests have no variables.
        let text = example
            .replace("${PAGERDUTY_ROUTING_KEY}", "key")
            .replace("${SLACK_WEBHOOK_URL}", "https://hooks.example.com");
        let text = text.replace("${DISCORD_WEBHOOK_URL}", "https://hooks.example.com");
        fs::write(folder.join(format!("example-{number}.yaml")), text).unwrap();
    }
    let clock = SimulatedClock::at(START);
    let running =
        Running::beside(data.path(), workspace.path(), Vec::new(), &clock, configure, Settings::default()).await;
    let (_, page) = running.get("/api/routes", "ann").await;
    let (_, refused) = running.get("/api/feed?from=oldest&topic=hub.config.refused", "ann").await;
    assert_eq!(refused["items"], json!([]));
    assert_eq!(page["data"]["items"].as_array().unwrap().len(), 7);
    running.stop().await;
}
