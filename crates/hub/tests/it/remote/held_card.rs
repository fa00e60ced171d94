//! An agent whose card changes are held: until its new card is accepted, messages go where the one before says.

use serde_json::{Value, json};

use super::script::{Asked, Reply, Scripted, card, task};
use crate::running::{Running, folder};

/// A card whose only interface is at a path.
fn card_at(path: &str) -> Value {
    let mut card = card(false);
    card["supportedInterfaces"][0]["url"] = path.into();
    card
}

/// The etag of the card that is held, once the agent was looked at now.
async fn held(running: &Running) -> Value {
    let (status, shown) = running.ask("POST /api/agents/far:refresh", "ann", &[], "").await;
    assert_eq!(status, 200, "{shown}");
    shown["held"]["etag"].clone()
}

#[tokio::test]
async fn messages_go_where_the_accepted_card_says_until_another_one_is_accepted() {
    let remote = Scripted::with_card(card_at("/old"), |asked, _| match asked.method() {
        "SendMessage" => Reply::Result(json!({ "task": task("TASK_STATE_COMPLETED", "m") })),
        _ => Reply::Error(-32601),
    })
    .await;
    let (data, files) = (folder(), folder());
    let agents = format!("agents:\n  - name: far\n    url: {}\n    cardChanges: hold\n", remote.url());
    std::fs::write(files.path().join("agents.yaml"), agents).unwrap();
    let last_sent = || remote.calls("SendMessage").last().cloned().unwrap();
    let goes_to = async |running: &Running| {
        let sent = running.send("ann", "far", "go").await;
        assert_eq!(sent["status"]["state"], "TASK_STATE_COMPLETED", "{sent}");
        last_sent().path().to_owned()
    };
    let running = Running::of_workspace(data.path(), files.path(), |_| {}).await;
    assert_eq!(held(&running).await, Value::Null, "the first card counts");
    assert_eq!(goes_to(&running).await, "/old");
    remote.show(card_at("/new"));
    assert!(held(&running).await.is_string());
    assert_eq!(goes_to(&running).await, "/old", "nobody has accepted the other address");
    running.stop().await;

    // After a restart the message itself finds the new card, or the first probe does.
    let running = Running::of_workspace(data.path(), files.path(), |_| {}).await;
    assert_eq!(goes_to(&running).await, "/old", "nor has a restart");
    let etag = held(&running).await;
    assert_eq!(goes_to(&running).await, "/old");
    let (status, shown) = running.post("/api/agents/far:accept", "ann", &json!({ "etag": etag })).await;
    assert_eq!((status, &shown["held"]), (200, &Value::Null), "{shown}");
    assert_eq!(goes_to(&running).await, "/new");
    let cards: Vec<Asked> = remote.calls("card");
    assert!(cards.iter().all(|asked| asked.path().starts_with("/.well-known/")), "{cards:?}");
    running.stop().await;
}
