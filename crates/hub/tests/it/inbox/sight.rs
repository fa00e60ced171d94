//! Who sees a question and may decide it. What is not a key's to see looks like what is not there.

use serde_json::json;

use super::{approve, asked, decide, items, say, server};
use crate::running::folder;

#[tokio::test]
async fn nobody_decides_what_is_not_theirs() {
    let data = folder();
    let running = server(data.path()).await;
    let plain = asked(&running, "bob", "echo", "ask").await;
    let gate = asked(&running, "bob", "echo", "gate approve 60").await;
    let elsewhere = asked(&running, "bob", "other", "operators").await;
    for (key, id, right) in [
        // A caller opens no gate of its own.
        ("bob", &gate, 403),
        // Another caller; one with the same agent; keys with a role for another agent.
        ("bea", &plain, 404),
        ("cat", &plain, 404),
        ("bea", &gate, 404),
        ("ole", &elsewhere, 404),
        ("eva", &elsewhere, 404),
        // Who sees all decides nothing.
        ("vic", &plain, 403),
        ("vic", &gate, 403),
        ("eva", &gate, 403),
    ] {
        let (status, refusal) = decide(&running, key, id, approve()).await;
        assert_eq!(status, right, "{key} {refusal}");
        let seen = running.get(&format!("/api/inbox/{id}"), key).await.0;
        assert_eq!(seen == 404, right == 404, "{key} sees what it may not decide: {seen}");
    }
    let unknown = [
        format!("{plain}9"),
        "none.1".to_owned(),
        "none".to_owned(),
        plain.replace('.', ".0"),
        plain.replace('.', ".+"),
    ];
    for id in unknown {
        let (status, refusal) = decide(&running, "ann", &id, approve()).await;
        assert_eq!((status, &refusal["code"]), (404, &json!("NOT_FOUND")), "{id} {refusal}");
    }
    assert_eq!(decide(&running, "", &plain, approve()).await.0, 401);
    for (key, right) in [("bob", 3), ("bea", 0), ("cat", 0), ("eva", 2), ("ole", 2), ("vic", 3), ("ann", 3)] {
        assert_eq!(items(&running, key, "").await.len(), right, "{key}");
        let (_, pending) = running.get("/api/hitl/pending", key).await;
        assert_eq!(pending["data"]["items"].as_array().unwrap().len(), right, "{key}");
    }
    // What the owner writes meanwhile neither opens the gate nor pushes it aside.
    let task = gate.rsplit_once('.').unwrap().0;
    for text in ["yes", "approve", "y"].into_iter().cycle().take(20) {
        say(&running, "bob", task, text).await;
    }
    assert_eq!(items(&running, "ole", "?kind=gate").await[0]["id"], json!(gate));
    assert_eq!(decide(&running, "ole", &gate, approve()).await.0, 200);
    running.stop().await;
}

#[tokio::test]
async fn a_key_for_some_agents_neither_sees_nor_decides_fan_outs_of_others() {
    let data = folder();
    let running = server(data.path()).await;
    let body = json!({ "message": "ask", "targets": ["echo", "other"] });
    let (_, sent) = running.post("/api/dispatch", "bob", &body).await;
    let root = sent["taskId"].as_str().unwrap();
    let waiting = tokio::time::timeout(crate::HANG_GUARD, async {
        loop {
            let open = items(&running, "ann", "").await;
            if open.len() == 3 {
                return open;
            }
        }
    });
    let open = waiting.await.unwrap();
    let of_root = open.iter().find(|item| item["taskId"] == root).unwrap();
    let id = of_root["id"].as_str().unwrap();
    assert_eq!(of_root["agent"], "~fanout");
    for key in ["ada", "ole", "eva", "cat", "bea"] {
        assert!(items(&running, key, "").await.iter().all(|item| item["agent"] == "echo"), "{key}");
        assert!(items(&running, key, "?agent=~fanout").await.is_empty(), "{key}");
        assert_eq!(running.get(&format!("/api/inbox/{id}"), key).await.0, 404, "{key}");
        assert_eq!(decide(&running, key, id, approve()).await.0, 404, "{key}");
    }
    assert_eq!(items(&running, "bob", "").await.len(), 3);
    assert_eq!(decide(&running, "oli", id, json!({ "decision": "answer", "text": "go" })).await.0, 200);
    running.stop().await;
}
