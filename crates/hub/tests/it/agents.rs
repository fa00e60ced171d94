//! `/api/agents/runtime` and `/api/agent-health`: the agents as earlier hubs show them.

use std::time::Duration;

use serde_json::{Value, json};
use switchboard_host::config::agent_name::AgentName;
use switchboard_host::config::value::Scalar as _;

use crate::card_server::CardServer;
use crate::running::{Frame, Running, Stream, folder};

/// The members of an object.
fn members(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

#[tokio::test]
async fn agents_and_their_last_probes_are_shown_and_addresses_to_administrators_only() {
    let (data, files) = (folder(), folder());
    std::fs::write(files.path().join("agents.yaml"), "agents: [{ name: echo, builtin: echo }]\n").unwrap();
    let far = CardServer::start(&["review", "deploy"]).await;
    // Nothing listens there any more.
    let gone = format!("http://{}", std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap());
    let running = Running::of_workspace(data.path(), files.path(), |_| {}).await;
    for (name, url) in [("far", &far.url), ("gone", &gone)] {
        let (status, answer) =
            running.post("/api/agents?force=true", "ann", &json!({ "name": name, "url": url })).await;
        assert_eq!(status, 201, "{answer}");
        assert_eq!(running.post(&format!("/api/agents/{name}:refresh"), "ann", &json!({})).await.0, 200);
    }

    let (status, shown) = running.get("/api/agents/runtime", "bob").await;
    let agents = json!([
        { "name": "echo", "type": "builtin", "skills": ["echo"] },
        { "name": "far", "type": "url", "skills": ["review", "deploy"] },
        { "name": "gone", "type": "url", "skills": [], "pendingDiscovery": true },
    ]);
    assert_eq!((status, sorted(&shown["data"]["agents"])), (200, agents), "{shown}");
    let (_, shown) = running.get("/api/agents/runtime", "ann").await;
    let hosts: Vec<&Value> = shown["data"]["agents"].as_array().unwrap().iter().map(|agent| &agent["host"]).collect();
    assert!(hosts.contains(&&json!(far.url)) && hosts.contains(&&json!(gone)), "{shown}");
    let (_, shown) = running.get("/api/agents/runtime", "cat").await;
    assert_eq!(shown["data"]["agents"].as_array().unwrap().len(), 1, "{shown}");

    let (status, probes) = running.get("/api/agent-health", "bob").await;
    let probes = sorted(&probes["data"]);
    assert_eq!((status, probes.as_array().unwrap().len()), (200, 2), "{probes}");
    let (good, bad) = (&probes[0], &probes[1]);
    let of_all = [
        "agentName",
        "cardAvailable",
        "lastProbedAt",
        "latencyMs",
        "pushNotifications",
        "reachable",
        "skillCount",
        "streaming",
    ];
    let mut names = members(good);
    names.sort_unstable();
    assert_eq!(names, of_all);
    assert_eq!(
        (&good["agentName"], &good["reachable"], &good["cardAvailable"]),
        (&json!("far"), &json!(true), &json!(true))
    );
    assert_eq!((&good["skillCount"], &good["streaming"]), (&json!(2), &json!(true)), "{good}");
    assert!(good["latencyMs"].is_u64() && good["lastProbedAt"].is_string(), "{good}");
    assert_eq!(
        (&bad["reachable"], &bad["cardAvailable"], &bad["skillCount"]),
        (&json!(false), &json!(false), &json!(0))
    );
    let (_, probes) = running.get("/api/agent-health", "ann").await;
    let probes = sorted(&probes["data"]);
    assert_eq!((&probes[0]["url"], &probes[0]["error"]), (&json!(far.url), &Value::Null), "{probes}");
    assert!(probes[1]["url"] == json!(gone) && probes[1]["error"].is_string(), "{probes}");
    assert_eq!(running.get("/api/agent-health", "cat").await.1["data"], json!([]));

    // The journal says what administrators have done, and what is wrong with a file, to administrators only too.
    let item = json!({ "name": "far", "url": far.url, "headers": { "X-Team": "blue-team" } });
    let (status, answer) = running.ask("PUT /api/agents/far", "ann", &[], &item.to_string()).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(running.post("/api/a2a/probe", "ann", &json!({ "url": gone })).await.0, 200);
    std::fs::write(files.path().join("agents.yaml"), "agents: [{ name: echo, builtin: no-such }]\n").unwrap();
    running.reload_now.notify_one();
    running.topics("hub.config.refused", 1).await;
    for key in ["ann", "ada", "oli", "ole", "vic", "eva", "bob", "cat"] {
        for (way, read) in journal(&running, key).await {
            let addresses = [far.url.as_str(), gone.as_str()];
            let more = ["X-Team", "blue-team", "audit.agents.", "hub.config.refused", "no-such"];
            for secret in addresses.into_iter().chain(more) {
                assert_eq!(read.contains(secret), key == "ann", "{secret} by {key}, {way}: {read}");
            }
        }
    }
    running.stop().await;
}

/// All that a key reads of the journal, by every way there is to read it.
async fn journal(running: &Running, key: &str) -> Vec<(&'static str, String)> {
    let mut stream = running.stream("/api/feed?from=oldest", key, &["Accept: text/event-stream"]).await;
    // The last line that it may see is its own.
    let message = json!({ "message": "enough" });
    assert_eq!(running.post("/api/operator/message", key, &message).await.0, 202);
    let mut streamed = Vec::new();
    while streamed.last().is_none_or(|frame: &Frame| frame.event != "operator.message" || !is_of(frame, key)) {
        streamed.push(next(running, &mut stream).await);
    }
    let mut read = vec![("streamed", format!("{streamed:?}"))];
    for (way, path) in [
        ("page by page", "/api/feed?from=oldest&pageSize=100"),
        ("backward", "/api/feed?before=now&pageSize=100"),
        ("as history", "/api/bus/history?limit=1000"),
    ] {
        let (status, page) = running.get(path, key).await;
        assert_eq!(status, 200, "{page}");
        read.push((way, page.to_string()));
    }
    read
}

/// The next frame, while time passes: a stream waits a moment for rows that may still come.
async fn next(running: &Running, stream: &mut Stream) -> Frame {
    let mut next = std::pin::pin!(stream.next());
    loop {
        tokio::select! {
            biased;
            frame = &mut next => return frame,
            _ = running.get("/api/tasks?pageSize=1", "vic") => running.clock.advance(Duration::from_millis(10)),
        }
    }
}

fn is_of(frame: &Frame, key: &str) -> bool {
    frame.data["source"]["caller"] == key
}

#[tokio::test]
async fn an_agent_that_a_key_may_not_call_is_not_named_to_it_as_the_default_one() {
    let (data, files) = (folder(), folder());
    let agents = "agents: [{ name: echo, builtin: echo }, { name: secret-guide, builtin: guide }]\n";
    std::fs::write(files.path().join("agents.yaml"), agents).unwrap();
    let helm = |config: &mut switchboard_host::config::Config| {
        config.hub.roles.helm = AgentName::from_text("secret-guide").ok();
        config.hub.roles.reviewer = AgentName::from_text("echo").ok();
    };
    let running = Running::of_workspace(data.path(), files.path(), helm).await;
    for (key, roles) in [
        ("vic", json!({ "helm": "secret-guide", "reviewer": "echo" })),
        ("eva", json!({ "helm": null, "reviewer": "echo" })),
        ("cat", json!({ "helm": null, "reviewer": "echo" })),
    ] {
        assert_eq!(running.get("/api/agents", key).await.1["roles"], roles, "{key}");
    }
    let sent = running.post("/api/dispatch", "cat", &json!({ "message": "hello" })).await;
    let message = json!({ "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "hello" }] });
    let over_a2a = running.post("/a2a/message:send", "cat", &json!({ "message": message })).await;
    for (status, refusal) in [sent, over_a2a] {
        let text = refusal.to_string();
        assert!(status == 403 && text.contains("default agent") && !text.contains("secret-guide"), "{text}");
    }
    // One that it names itself is told to be another one's, as at that agent's own address.
    let (status, refusal) =
        running.post("/api/dispatch", "cat", &json!({ "message": "hello", "targets": "secret-guide" })).await;
    assert_eq!((status, &refusal["code"]), (403, &json!("FORBIDDEN")), "{refusal}");
    running.stop().await;
}

/// Agents by their names.
fn sorted(agents: &Value) -> Value {
    let mut agents = agents.as_array().unwrap().clone();
    agents.sort_by_key(|agent| (agent["name"].to_string(), agent["agentName"].to_string()));
    agents.into()
}
