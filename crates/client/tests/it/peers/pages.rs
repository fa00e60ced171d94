//! Lists that come in pages, also from those who cannot count.

use serde_json::{Value, json};
use switchboard_client::{CallContext, ClientError};

use super::script::{agent, result};
use crate::world::client;

fn page(ids: &[String], next: &str) -> Value {
    let config = |id: &String| json!({"id": id, "taskId": "t", "url": "https://hook.example"});
    json!({"configs": ids.iter().map(config).collect::<Vec<_>>(), "nextPageToken": next})
}

#[tokio::test]
async fn all_pages_are_read() {
    let peer = agent(false, |asked, _| match asked.json()["params"]["pageToken"].as_str() {
        None => result(page(&["a".to_owned()], "2")),
        Some(_) => result(page(&["b".to_owned()], "")),
    })
    .await;
    let all = client(peer.url(), |_| {}).webhooks(&CallContext::default(), &"t".into()).await.unwrap();
    assert_eq!(all.iter().filter_map(|config| config.id.as_deref()).collect::<Vec<_>>(), ["a", "b"]);
}

#[tokio::test]
async fn an_agent_that_gives_the_same_page_again_has_given_all() {
    let peer = agent(false, |_, _| result(page(&["a".to_owned(), "b".to_owned()], "again"))).await;
    let all = client(peer.url(), |_| {}).webhooks(&CallContext::default(), &"t".into()).await.unwrap();
    assert_eq!(all.iter().filter_map(|config| config.id.as_deref()).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(peer.asked().len(), 2);
}

#[tokio::test]
async fn a_list_without_an_end_is_told_as_that() {
    let peer = agent(false, |_, before| {
        let ids: Vec<String> = (0..4_000).map(|number| format!("{before}-{number}")).collect();
        result(page(&ids, &before.to_string()))
    })
    .await;
    let error = client(peer.url(), |_| {}).webhooks(&CallContext::default(), &"t".into()).await.unwrap_err();
    assert!(matches!(&error, ClientError::NotA2a { what, .. } if what.contains("does not end")), "{error}");
    assert_eq!(peer.asked().len(), 3);
}
