//! Cards: where they are looked for, and how they are kept.

use switchboard_client::{ClientError, Context, NoCardAt};

use super::script::{COMPLETED, Peer, card, json, result, says, task};
use crate::world::{client, say};

#[tokio::test]
async fn every_place_without_a_card_is_told() {
    let peer = Peer::start(|asked, _| match asked.line().ends_with("agent.json") {
        true => says(200, "content-type: text/html", "<html><title>Welcome</title></html>"),
        false => says(404, "content-type: text/plain", "no"),
    })
    .await;
    let client = client(peer.url(), |_| {});
    let error = client.send(&Context::default(), say("hello")).await.unwrap_err();
    let ClientError::NoCard(tried) = &error else { panic!("{error}") };
    let places = |name: &str| format!("{}/.well-known/{name}", peer.url());
    let problem = "not there (404)".to_owned();
    assert_eq!(tried[0], NoCardAt { url: places("agent-card.json"), status: Some(404), problem });
    assert_eq!((&tried[1].url, tried[1].status), (&places("agent.json"), Some(200)));
    let problem = &tried[1].problem;
    assert!(problem.contains("web page") && problem.contains("Welcome"), "{problem}");
    assert_eq!(tried.len(), 2);
}

#[tokio::test]
async fn a_card_may_be_at_the_older_place() {
    let peer = Peer::start(|asked, _| match asked.line().as_str() {
        "GET /.well-known/agent.json" => json(200, &card(false)),
        "POST /rpc" => result(serde_json::json!({"task": task(COMPLETED, "done")})),
        _ => says(404, "content-type: text/plain", "no"),
    })
    .await;
    let client = client(peer.url(), |_| {});
    assert_eq!(client.card(&Context::default()).await.unwrap().card.name, "peer");
    client.send(&Context::default(), say("hello")).await.unwrap();
}

#[tokio::test]
async fn a_card_is_asked_for_once_and_then_only_whether_it_has_changed() {
    let peer = Peer::start(|asked, _| {
        let body = card(false).to_string();
        match asked.header("if-none-match") {
            Some("\"1\"") => says(304, "etag: \"1\"", ""),
            _ => says(200, "content-type: application/json\r\netag: \"1\"\r\ncache-control: max-age=0", &body),
        }
    })
    .await;
    let client = client(peer.url(), |_| {});
    let first = client.card(&Context::default()).await.unwrap();
    let second = client.card(&Context::default()).await.unwrap();
    assert_eq!(first.json, second.json);
    client.card(&Context::default()).await.unwrap();
    let asked: Vec<_> = peer.cards().iter().map(|asked| asked.header("if-none-match").map(str::to_owned)).collect();
    assert_eq!(asked, [None, Some("\"1\"".to_owned())], "what has not changed is good for a while");
}

#[tokio::test]
async fn a_card_that_is_lost_on_the_way_is_asked_for_again() {
    let peer = Peer::start(|_, before| match before {
        0 => super::script::Reply::Closes,
        1 => super::script::Reply::Says(b"HTTP/1.1 200 So\r\ncontent-length: 900\r\n\r\n{\"name\"".to_vec()),
        2 => says(503, "content-type: text/plain", "no healthy upstream"),
        _ => json(200, &card(false)),
    })
    .await;
    let client = client(peer.url(), |_| {});
    assert_eq!(client.card(&Context::default()).await.unwrap().card.name, "peer");
    assert!(peer.cards().iter().all(|asked| asked.line().ends_with("agent-card.json")));
}

#[tokio::test]
async fn nobody_there_is_told_at_once() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let client = client(format!("http://{address}"), |_| {});
    let error = client.card(&Context::default()).await.unwrap_err();
    assert!(matches!(error, ClientError::Unreachable { .. }), "{error}");
}
