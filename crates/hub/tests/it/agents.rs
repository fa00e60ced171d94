//! `/api/agents/runtime` and `/api/agent-health`: the agents as earlier hubs show them.

use serde_json::{Value, json};

use crate::card_server::CardServer;
use crate::running::{Running, folder};

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
    running.stop().await;
}

/// Agents by their names.
fn sorted(agents: &Value) -> Value {
    let mut agents = agents.as_array().unwrap().clone();
    agents.sort_by_key(|agent| (agent["name"].to_string(), agent["agentName"].to_string()));
    agents.into()
}
