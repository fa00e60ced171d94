//! Callers: who is let in, and in what form the others are told.

use switchboard_engine::{AgentScope, CallerRole};

use crate::edge::running::{Running, request, send_message};
use crate::edge::wire::PATIENCE;

const JSON: &str = "Content-Type: application/json";
const CHALLENGE: &str = "Bearer realm=\"switchboard\"";
const SCOPE: Option<&str> = Some("Bearer realm=\"switchboard\", error=\"insufficient_scope\"");

#[tokio::test]
async fn without_a_key_each_binding_says_so_in_its_own_form() {
    let running = Running::keyed().await;
    let v1 = running.ask("POST /a2a", &[JSON], &send_message(9, "SendMessage", "x")).await;
    assert_eq!((v1.status, v1.header("www-authenticate")), (401, Some(CHALLENGE)), "{v1:?}");
    assert_eq!((&v1.json()["jsonrpc"], &v1.json()["id"]), (&"2.0".into(), &9.into()));
    assert_eq!(v1.json()["error"]["data"][0]["reason"], "UNAUTHENTICATED");
    assert!(v1.body.contains("X-API-Key"), "{v1:?}");

    let v03 = running.ask("POST /a2a", &[JSON], &send_message(9, "message/send", "x")).await;
    assert_eq!((v03.status, v03.header("www-authenticate")), (401, Some(CHALLENGE)), "{v03:?}");
    assert_eq!((&v03.json()["id"], &v03.json()["error"]["code"]), (&9.into(), &(-32600).into()));
    assert!(v03.json()["error"].get("data").is_none_or(|data| !data.is_array()), "{v03:?}");

    let rest = running.ask("POST /a2a/message:send", &[JSON], "{}").await;
    assert_eq!((rest.status, rest.header("www-authenticate")), (401, Some(CHALLENGE)));
    assert_eq!(rest.json()["error"]["status"], "UNAUTHENTICATED");
    assert_eq!(rest.json()["error"]["details"][0]["reason"], "UNAUTHENTICATED");

    let rest_v03 = running.ask("GET /a2a/v1/tasks/t1", &[], "").await;
    assert_eq!((rest_v03.status, rest_v03.header("www-authenticate")), (401, Some(CHALLENGE)));
    assert_eq!(rest_v03.json()["code"], -32600, "{rest_v03:?}");
    assert!(rest_v03.json()["message"].is_string());
}

#[tokio::test]
async fn a_key_opens_in_either_header_and_a_wrong_one_does_not() {
    let running = Running::keyed().await;
    let body = send_message(1, "SendMessage", "hi");
    for key in ["Authorization: Bearer a2a_ann", "authorization: bearer   a2a_ann ", "X-API-Key:  a2a_ann "] {
        let reply = running.ask("POST /a2a", &[JSON, key], &body).await;
        assert_eq!(reply.status, 200, "{key}: {reply:?}");
        assert!(reply.json()["result"].is_object(), "{key}: {reply:?}");
    }
    for key in [
        "Authorization: Bearer a2a_an",
        "Authorization: Bearer a2a_annn",
        "X-API-Key: A2A_ANN",
        "Authorization: Basic eDp5",
        "Authorization: Bearer ",
        "X-API-Key: ",
    ] {
        let reply = running.ask("POST /a2a", &[JSON, key], &body).await;
        assert_eq!(reply.status, 401, "{key}: {reply:?}");
    }
    let unknown = running.ask("GET /tasks", &["X-API-Key: wrong"], "").await;
    assert!(unknown.header("www-authenticate").unwrap().contains("invalid_token"));
    running.keys.revoke("a2a_ann");
    assert_eq!(running.ask("POST /a2a", &[JSON, "X-API-Key: a2a_ann"], &body).await.status, 401);
}

#[tokio::test]
async fn more_than_one_key_is_refused_everywhere() {
    let running = Running::keyed().await;
    let (bearer, api_key) = ("Authorization: Bearer a2a_ann", "X-API-Key: a2a_ann");
    for keys in
        [[bearer, bearer], [bearer, "Authorization: Basic eDp5"], [api_key, api_key], [bearer, "X-API-Key: a2a_bob"]]
    {
        for head in ["GET /a2a/tasks", "GET /.well-known/agent-card.json", "GET /healthz"] {
            let refused = running.ask(head, &keys, "").await;
            assert_eq!(refused.status, 401, "{head} with {keys:?}: {refused:?}");
            assert!(refused.header("www-authenticate").unwrap().contains("invalid_request"), "{refused:?}");
            assert!(refused.body.contains("more than one key"), "{refused:?}");
        }
    }
    for keys in [[bearer, api_key], ["Authorization: Basic eDp5", api_key]] {
        assert_eq!(running.ask("GET /a2a/tasks", &keys, "").await.status, 200, "{keys:?}");
    }
}

#[tokio::test]
async fn the_names_of_agents_are_for_those_who_may_call_them() {
    let running = Running::keyed().await;
    let html = "Accept: text/html";
    for (headers, shown, hidden) in [
        (vec![], [].as_slice(), ["echo", "gate", "counted"].as_slice()),
        (vec!["X-API-Key: wrong"], &[], &["echo", "gate", "counted"]),
        (vec!["X-API-Key: a2a_bob"], &["echo"], &["gate", "counted"]),
        (vec!["X-API-Key: a2a_ann"], &["echo", "gate", "counted"], &[]),
    ] {
        for head in [
            "GET /a2a/x/.well-known/agent-card.json",
            "GET /a2a/x/.well-known/agent.json",
            "GET /a2a/x",
            "PUT /a2a/x/tasks",
            "GET /a2a",
            "GET /openapi.json",
        ] {
            let headers = [headers.as_slice(), &[html]].concat();
            let reply = running.ask(head, &headers, "").await;
            for name in hidden {
                // The agent of the root has its public card.
                assert!(
                    !reply.body.contains(&format!("{name}\"")) && !reply.body.contains(&format!(", {name}")),
                    "{head} with {headers:?} tells {name}: {reply:?}"
                );
                assert!(
                    !reply.body.contains(&format!("/a2a/{name}")),
                    "{head} with {headers:?} tells {name}: {reply:?}"
                );
            }
            if head.starts_with("GET /a2a/x/") {
                assert_eq!(reply.status, 404, "{reply:?}");
                for name in shown {
                    assert!(reply.body.contains(name), "{head} with {headers:?}: {reply:?}");
                }
            }
        }
    }
}

#[tokio::test]
async fn a_key_for_one_agent_is_refused_at_another_in_each_form() {
    let running = Running::keyed().await;
    let key = "X-API-Key: a2a_bob";
    let allowed = running.ask("POST /a2a/echo", &[JSON, key], &send_message(1, "SendMessage", "hi")).await;
    assert_eq!(allowed.status, 200, "{allowed:?}");
    for (method, data_is_array) in [("SendMessage", true), ("message/send", false)] {
        let reply = running.ask("POST /a2a/gate", &[JSON, key], &send_message(4, method, "hi")).await;
        assert_eq!((reply.status, &reply.json()["id"]), (403, &4.into()), "{reply:?}");
        assert_eq!(reply.header("www-authenticate"), SCOPE, "{reply:?}");
        assert_eq!(reply.json()["error"]["data"].is_array(), data_is_array, "{reply:?}");
    }
    let message = serde_json::json!({ "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "x" }] });
    let body = serde_json::json!({ "message": message }).to_string();
    let rest = running.ask("POST /a2a/gate/message:send", &[JSON, key], &body).await;
    assert_eq!((rest.status, &rest.json()["error"]["status"]), (403, &"PERMISSION_DENIED".into()), "{rest:?}");
    assert_eq!(rest.header("www-authenticate"), SCOPE, "{rest:?}");
    // No key would be good enough here, so none is asked for.
    let page = running.ask("GET /a2a/gate/tasks", &["Origin: https://evil.example", key], "").await;
    assert_eq!((page.status, page.header("www-authenticate")), (403, None), "{page:?}");
}

#[tokio::test]
async fn what_is_public_needs_no_key_and_metrics_need_an_operator() {
    let running = Running::keyed().await;
    for path in ["/.well-known/agent-card.json", "/a2a/echo/.well-known/agent-card.json", "/healthz", "/readyz"] {
        assert_eq!(running.ask(&format!("GET {path}"), &[], "").await.status, 200, "{path}");
        let wrong = running.ask(&format!("GET {path}"), &["X-API-Key: wrong"], "").await;
        assert_eq!(wrong.status, 200, "{path}: a wrong key does not matter where none is needed");
    }
    let anonymous = running.ask("GET /metrics", &[], "").await;
    assert_eq!((anonymous.status, anonymous.header("www-authenticate")), (401, Some(CHALLENGE)));
    let forbidden = running.ask("GET /metrics", &["X-API-Key: a2a_bob"], "").await;
    assert_eq!((forbidden.status, forbidden.header("www-authenticate")), (403, SCOPE), "{forbidden:?}");
    running.keys.add("a2a_eve", "eve", AgentScope::Only(vec!["echo".into()]), CallerRole::Admin);
    let limited = running.ask("GET /metrics", &["X-API-Key: a2a_eve"], "").await;
    assert!(limited.status == 403 && limited.body.contains("without --agents"), "{limited:?}");
    let operator = running.ask("GET /metrics", &["X-API-Key: a2a_ann"], "").await;
    assert_eq!(operator.status, 404, "this server has no metrics to show: {operator:?}");
}

#[tokio::test]
async fn revoking_a_key_ends_its_open_stream_and_no_other() {
    let mut running = Running::keyed().await;
    let mut streams = Vec::new();
    for (key, caller) in [("a2a_ann", "ann"), ("a2a_cid", "cid")] {
        running.keys.add(key, caller, AgentScope::All, CallerRole::None);
        let mut wire = running.connect().await;
        let headers = [JSON, &format!("X-API-Key: {key}")];
        wire.send(&request("POST /a2a/gate", &headers, &send_message(1, "SendStreamingMessage", "hold"))).await;
        assert_eq!(wire.head().await.status, 200);
        running.began.recv().await.unwrap();
        streams.push(wire);
    }
    let [mut ann, mut cid] = <[_; 2]>::try_from(streams).ok().unwrap();
    running.keys.revoke("a2a_ann");
    let ended = async { while ann.chunk().await.is_some() {} };
    // Otherwise it would go on for as long as the gate is closed.
    tokio::time::timeout(PATIENCE, ended).await.expect("the stream outlived its key");
    running.gate.notify_waiters();
    let mut seen = String::new();
    while let Some(chunk) = cid.chunk().await {
        seen.push_str(&chunk);
    }
    assert!(seen.contains("TASK_STATE_COMPLETED"), "{seen}");
}

#[tokio::test]
async fn revoking_a_key_ends_the_wait_of_its_blocked_sends_and_not_their_tasks() {
    let mut running = Running::keyed().await;
    let v1 = serde_json::json!({ "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "x" }] });
    let v03 = serde_json::json!({ "kind": "message", "messageId": "m", "role": "user", "parts": [{ "kind": "text", "text": "x" }] });
    let rest_v03 = serde_json::json!({ "messageId": "m", "role": "ROLE_USER", "content": [{ "text": "x" }] });
    let rpc = |method: &str, message| serde_json::json!({ "jsonrpc": "2.0", "id": 8, "method": method, "params": { "message": message } });
    let asks = [
        ("POST /a2a/gate", rpc("SendMessage", v1.clone())),
        ("POST /a2a/gate", rpc("message/send", v03)),
        ("POST /a2a/gate/message:send", serde_json::json!({ "message": v1 })),
        ("POST /a2a/gate/v1/message:send", serde_json::json!({ "message": rest_v03 })),
    ];
    let mut blocked = Vec::new();
    for (head, body) in &asks {
        let mut wire = running.connect().await;
        wire.send(&request(head, &[JSON, "X-API-Key: a2a_ann"], &body.to_string())).await;
        running.began.recv().await.unwrap();
        blocked.push(wire);
    }
    running.keys.revoke("a2a_ann");
    for (mut wire, (head, body)) in blocked.into_iter().zip(&asks) {
        let reply = wire.reply().await;
        assert_eq!(reply.status, 401, "{head}: {reply:?}");
        assert!(reply.header("www-authenticate").unwrap().contains("invalid_token"), "{reply:?}");
        assert_eq!(reply.json()["id"], body["id"], "{reply:?}");
        let error = if head.contains("/v1/") { reply.json() } else { reply.json()["error"].clone() };
        assert!(error["message"].as_str().unwrap().contains("revoked"), "{reply:?}");
    }
    running.gate.notify_waiters();
    running.keys.add("a2a_new", "ann", AgentScope::All, CallerRole::None);
    let completed = async {
        let query = "GET /tasks?status=TASK_STATE_COMPLETED";
        while running.ask(query, &["X-API-Key: a2a_new"], "").await.json()["totalSize"] != asks.len() {}
    };
    tokio::time::timeout(PATIENCE, completed).await.expect("the tasks did not go on");
}

#[tokio::test]
async fn the_first_key_ends_what_is_open_without_one_as_a_revoked_key_would() {
    let mut running = Running::open().await;
    let v1 = serde_json::json!({ "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "x" }] });
    let mut blocked = Vec::new();
    for (head, body) in [
        ("POST /a2a/gate", send_message(8, "SendMessage", "x")),
        ("POST /a2a/gate/message:send", serde_json::json!({ "message": v1 }).to_string()),
    ] {
        let mut wire = running.connect().await;
        wire.send(&request(head, &[JSON], &body)).await;
        running.began.recv().await.unwrap();
        blocked.push(wire);
    }
    let mut stream = running.connect().await;
    stream.send(&request("POST /a2a/gate", &[JSON], &send_message(1, "SendStreamingMessage", "x"))).await;
    assert_eq!(stream.head().await.status, 200);
    running.began.recv().await.unwrap();
    let open = running.ask("GET /.well-known/agent-card.json", &["A2A-Version: 1.0"], "").await;
    assert!(open.json().get("securitySchemes").is_none(), "{open:?}");

    running.keys.add("a2a_ann", "ann", AgentScope::All, CallerRole::None);
    running.keyed.cancel();
    for wire in &mut blocked {
        let reply = wire.reply().await;
        assert_eq!((reply.status, reply.header("www-authenticate")), (401, Some(CHALLENGE)), "{reply:?}");
        let error = &reply.json()["error"];
        assert!(error["message"].as_str().unwrap().starts_with("a key is needed"), "{reply:?}");
        // The connection goes on, for those who have a key.
        wire.send(&request("GET /tasks", &[], "")).await;
        assert_eq!(wire.reply().await.status, 401);
        wire.send(&request("GET /tasks", &["X-API-Key: a2a_ann"], "")).await;
        assert_eq!(wire.reply().await.status, 200);
    }
    while stream.chunk().await.is_some() {}
    stream.send(&request("GET /healthz", &[], "")).await;
    assert_eq!(stream.reply().await.status, 200, "the stream ended in order, not with its connection");
    let keyed = running.ask("GET /.well-known/agent-card.json", &["A2A-Version: 1.0"], "").await;
    assert!(keyed.json()["securitySchemes"].is_object(), "{keyed:?}");
    let metrics = running.ask("GET /metrics", &[], "").await;
    assert_eq!(metrics.status, 401, "{metrics:?}");
}

#[tokio::test]
async fn a_bug_behind_one_request_is_its_own_500() {
    let running = Running::keyed().await;
    let mut wire = running.connect().await;
    wire.send(&request("GET /tasks", &["X-API-Key: bug", "X-Request-Id: r-1"], "")).await;
    let reply = wire.reply().await;
    assert_eq!((reply.status, reply.header("x-request-id")), (500, Some("r-1")), "{reply:?}");
    assert!(!reply.body.contains("planted"), "what panicked is for the log: {reply:?}");
    wire.send(&request("GET /healthz", &[], "")).await;
    assert_eq!(wire.reply().await.status, 200, "even the connection lives on");
}
