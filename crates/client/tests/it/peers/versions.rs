//! Which version an agent is called in and where, when its card and its answers do not agree.

use serde_json::{Value, json};
use switchboard_a2a::{ErrorKind, ListRequest, Version};
use switchboard_client::{CallContext, ClientError, response_text};

use super::script::{Asked, COMPLETED, Peer, Reply, card, error, json as answer, result, task};
use crate::world::{client, say};

/// An agent whose card lists these interfaces.
async fn agent(interfaces: Value, replies: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Peer {
    Peer::start(move |asked, _| match asked.line().contains("/.well-known/") {
        true => {
            let mut card = card(false);
            card["supportedInterfaces"] = interfaces.clone();
            answer(200, &card)
        }
        false => replies(asked),
    })
    .await
}

fn interface(url: &str, version: &str) -> Value {
    json!({"url": url, "protocolBinding": "JSONRPC", "protocolVersion": version})
}

fn old_task() -> Value {
    json!({"kind": "task", "id": "t", "contextId": "c", "status": {"state": "completed"}})
}

fn lines(peer: &Peer) -> Vec<String> {
    peer.asked().iter().map(|asked| format!("{} {}", asked.line(), asked.what())).collect()
}

#[tokio::test]
async fn the_other_version_is_asked_where_the_card_has_it() {
    let interfaces = json!([interface("/v1", "1.0"), interface("/v03", "0.3")]);
    let peer = agent(interfaces, |asked| match (asked.line().as_str(), asked.what().as_str()) {
        ("POST /v03", "message/send") => result(old_task()),
        _ => error(-32009, "another version"),
    })
    .await;
    let client = client(peer.url(), |_| {});
    for _ in 0..2 {
        client.send(&CallContext::default(), say("hello")).await.unwrap();
    }
    let old = "POST /v03 message/send";
    assert_eq!(lines(&peer), ["POST /v1 SendMessage", old, old]);
}

#[tokio::test]
async fn an_agent_without_streams_is_not_taken_for_the_other_version() {
    let peer = agent(json!([interface("/rpc", "1.0")]), |asked| match asked.what().as_str() {
        "SendMessage" => result(json!({"task": task(COMPLETED, "done")})),
        "SendStreamingMessage" => error(-32601, "no such method"),
        "ListTasks" => result(json!({"tasks": [], "nextPageToken": "", "pageSize": 1, "totalSize": 0})),
        _ => error(-32600, "what?"),
    })
    .await;
    let client = client(peer.url(), |_| {});
    let followed = client.stream(&CallContext::default(), say("hello")).await.unwrap();
    assert_eq!(response_text(&followed.finish().await.unwrap()), "done");
    assert_eq!(client.interface(&CallContext::default()).await.unwrap().version, Version::V1);
    client.list(&CallContext::default(), ListRequest::default()).await.unwrap();
    assert_eq!(peer.story(), ["SendStreamingMessage", "message/stream", "SendMessage", "ListTasks"]);
}

#[tokio::test]
async fn the_first_refusal_is_told_if_the_second_says_less() {
    let peer = agent(json!([interface("/rpc", "1.0")]), |asked| match asked.what().as_str() {
        "CancelTask" => error(-32601, "nothing is stopped here"),
        _ => error(-32600, "what?"),
    })
    .await;
    let client = client(peer.url(), |_| {});
    let refused = client.cancel(&CallContext::default(), &"t".into(), None).await.unwrap_err();
    assert_eq!(refused.error_kind(), Some(ErrorKind::MethodNotFound), "{refused}");
    assert_eq!(client.interface(&CallContext::default()).await.unwrap().version, Version::V1);
}

#[tokio::test]
async fn a_refusal_that_only_the_right_version_gives_settles_it() {
    let peer = agent(json!([interface("/rpc", "1.0")]), |asked| match asked.what().as_str() {
        "tasks/get" => error(-32001, "no such task"),
        _ => error(-32601, "no such method"),
    })
    .await;
    let client = client(peer.url(), |_| {});
    for _ in 0..2 {
        let refused = client.get(&CallContext::default(), &"t".into(), None).await.unwrap_err();
        assert_eq!(refused.error_kind(), Some(ErrorKind::TaskNotFound), "{refused}");
    }
    assert_eq!(peer.story(), ["GetTask", "tasks/get", "tasks/get"]);
}

#[tokio::test]
async fn what_an_agent_need_not_have_never_settles_the_version() {
    let peer = agent(json!([interface("/rpc", "1.0")]), |asked| match asked.what().as_str() {
        "tasks/pushNotificationConfig/list" => result(json!([])),
        "GetTask" => result(task(COMPLETED, "")),
        _ => error(-32601, "no such method"),
    })
    .await;
    let client = client(peer.url(), |_| {});
    assert!(client.webhooks(&CallContext::default(), &"t".into()).await.unwrap().is_empty());
    client.get(&CallContext::default(), &"t".into(), None).await.unwrap();
    let listing = ["ListTaskPushNotificationConfigs", "tasks/pushNotificationConfig/list"];
    assert_eq!(peer.story(), [listing[0], listing[1], "GetTask"]);
}

#[tokio::test]
async fn tasks_are_listed_in_the_version_that_has_a_word_for_it() {
    let interfaces = json!([interface("/v1", "1.0"), interface("/v03", "0.3")]);
    let peer = agent(interfaces, |asked| match (asked.line().as_str(), asked.what().as_str()) {
        ("POST /v03", "message/send") => result(old_task()),
        ("POST /v1", "ListTasks") => result(json!({"tasks": [], "nextPageToken": "", "pageSize": 1, "totalSize": 0})),
        _ => error(-32601, "no such method"),
    })
    .await;
    let client = client(peer.url(), |_| {});
    client.send(&CallContext::default(), say("hello")).await.unwrap();
    assert_eq!(client.interface(&CallContext::default()).await.unwrap().version, Version::V03);
    client.list(&CallContext::default(), ListRequest::default()).await.unwrap();
    assert_eq!(client.interface(&CallContext::default()).await.unwrap().version, Version::V03);
    assert_eq!(lines(&peer), ["POST /v1 SendMessage", "POST /v03 message/send", "POST /v1 ListTasks"]);
}

#[tokio::test]
async fn an_interface_that_cannot_be_read_takes_no_other_with_it() {
    let interfaces = json!([interface("http://[", "1.0"), interface("/rpc", "1.0")]);
    let peer = agent(interfaces, |_| result(json!({"task": task(COMPLETED, "done")}))).await;
    client(peer.url(), |_| {}).send(&CallContext::default(), say("hello")).await.unwrap();
    assert_eq!(lines(&peer), ["POST /rpc SendMessage"]);

    let interfaces = json!([interface("ftp://127.0.0.1/", "1.0"), interface("/rpc", "1.0")]);
    let peer = agent(interfaces, |_| result(json!({"task": task(COMPLETED, "done")}))).await;
    let trusting = client(peer.url(), |peer| peer.trust_card_url = true);
    trusting.send(&CallContext::default(), say("hello")).await.unwrap();
    assert_eq!(lines(&peer), ["POST /rpc SendMessage"]);

    let peer = agent(json!([interface("http://[", "1.0")]), |_| Reply::Closes).await;
    let refused = client(peer.url(), |_| {}).send(&CallContext::default(), say("hello")).await.unwrap_err();
    assert!(matches!(&refused, ClientError::Invalid { field: "url", .. }), "{refused}");
}
