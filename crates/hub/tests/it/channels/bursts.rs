//! Bursts: joined once, when it is quiet or at the latest after a while; and messages that are told again.

use std::time::Duration;

use serde_json::json;

use super::{at_once, call, completed, heard, say, server, tell, words};
use crate::running::folder;

#[tokio::test]
async fn a_burst_is_handed_on_as_one_message_once_it_is_quiet() {
    let data = folder();
    let running = server(data.path()).await;
    let (task, context) = say(&running, "bob", "one").await;
    // Each within the three seconds of the one before, and the last one after more than three in all.
    for text in ["two", "three"] {
        running.clock.advance(Duration::from_secs(2));
        assert_eq!(say(&running, "bob", text).await, (task.clone(), context.clone()));
    }
    let ended = completed(&running, "bob", &task).await;
    assert_eq!(heard(&running, "bob").await, ["[1/3] one\n[2/3] two\n[3/3] three"]);
    let answer = &ended["artifacts"][0];
    assert_eq!((words(answer).as_str(), &answer["name"]), ("[1/3] ONE\n[2/3] TWO\n[3/3] THREE", &json!("echo")));
    let origin = &answer["metadata"]["switchboard/channel"];
    assert_eq!(
        (&origin["platform"], &origin["channel"], &origin["users"]),
        (&json!("slack"), &json!("C1"), &json!(["ann"]))
    );
    // What is said after that is the next task of the same conversation.
    let (next, same) = say(&running, "bob", "four").await;
    assert!(next != task && same == context);
    completed(&running, "bob", &next).await;
    assert_eq!(heard(&running, "bob").await.last().unwrap(), "four");
    running.stop().await;
}

#[tokio::test]
async fn somebody_who_never_stops_is_heard_after_the_longest_wait() {
    let data = folder();
    let running = server(data.path()).await;
    let (task, _) = say(&running, "bob", "wait 0").await;
    for number in 1..8 {
        running.clock.advance(Duration::from_secs(2));
        assert_eq!(say(&running, "bob", &number.to_string()).await.0, task);
    }
    // Fifteen seconds after the first one.
    running.clock.advance(Duration::from_secs(1));
    at_once(async || (!super::calls(&running, "bob").await.is_empty()).then_some(())).await;
    let all = heard(&running, "bob").await;
    assert!(all.len() == 1 && all[0].starts_with("[1/8] wait 0\n") && all[0].ends_with("[8/8] 7"), "{all:?}");
    completed(&running, "bob", &task).await;
    running.stop().await;
}

#[tokio::test]
async fn a_message_that_is_told_again_is_the_same_one() {
    let data = folder();
    let running = server(data.path()).await;
    let message = |text: &str| json!({ "channel": "C1", "text": text, "messageId": "m1" });
    let first = tell(&running, "bob", &message("once")).await;
    assert_eq!(tell(&running, "bob", &message("once")).await, first);
    completed(&running, "bob", &first.0).await;
    assert_eq!(tell(&running, "bob", &message("once")).await, first, "also when all is over");
    let (status, refusal) = running.post("/api/channels/slack/messages", "bob", &message("another")).await;
    assert_eq!((status, &refusal["code"]), (409, &json!("IDEMPOTENCY_KEY_REUSED")), "{refusal}");
    // In another channel, or by another key, it is another message.
    let elsewhere = json!({ "channel": "C2", "text": "once", "messageId": "m1" });
    let other = tell(&running, "bob", &elsewhere).await;
    assert!(other.0 != first.0 && other.1 != first.1);
    let foreign = tell(&running, "bea", &message("once")).await;
    assert!(foreign.0 != first.0);
    call(&running, "bob", 2).await;
    completed(&running, "bob", &other.0).await;
    assert_eq!(heard(&running, "bob").await, ["once", "once"]);
    running.stop().await;
}
