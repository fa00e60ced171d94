//! What is refused, with its name: what is unknown, of a wrong type, too large, or too much.

use serde_json::json;
use switchboard_host::config::size::{Count, Size};

use super::{answer, call, completed, heard, say, server, server_with};
use crate::running::folder;

#[tokio::test]
async fn what_is_wrong_with_a_message_is_named() {
    let data = folder();
    let running = server(data.path()).await;
    let long = "x".repeat(65 << 10);
    for (body, key) in [
        (json!({ "text": "x" }), "channel"),
        (json!({ "channel": "C1" }), "text"),
        (json!({ "channel": "C1", "text": "x", "parts": [{ "text": "y" }] }), "parts"),
        (json!({ "channel": "C1", "text": "x", "taskId": "t" }), "taskId"),
        (json!({ "channel": "C1", "text": "x", "metadata": {} }), "metadata"),
        (json!({ "channel": 7, "text": "x" }), "channel"),
        (json!({ "channel": "C1", "text": "x", "dm": "yes" }), "dm"),
        (json!({ "channel": "C1", "text": ["x"] }), "text"),
        (json!({ "channel": "C1", "text": "x", "user": "a\r\nX-Evil: 1" }), "user"),
        (json!({ "channel": "C\u{0}1", "text": "x" }), "channel"),
        (json!({ "channel": "C1", "text": "x", "messageId": "m".repeat(300) }), "messageId"),
        (json!({ "channel": "C1", "text": long }), "text"),
        (json!({ "channel": "C1", "parts": [{ "text": long }, { "text": "y" }] }), "parts"),
    ] {
        let (status, refusal) = running.post("/api/channels/slack/messages", "bob", &body).await;
        assert_eq!((status, &refusal["code"]), (400, &json!("INVALID")), "{key}: {refusal}");
        assert_eq!(refusal["problems"][0]["key"], key, "{refusal}");
    }
    for platform in ["Slack", "sl.ack", "-", &"s".repeat(33)] {
        let path = format!("/api/channels/{platform}/messages");
        let (status, refusal) = running.post(&path, "bob", &json!({ "channel": "C1", "text": "x" })).await;
        assert_eq!((status, &refusal["problems"][0]["key"]), (400, &json!("platform")), "{refusal}");
    }
    assert!(super::calls(&running, "bob").await.is_empty());
    running.stop().await;
}

#[tokio::test]
async fn a_full_mailbox_refuses_more_and_a_long_burst_is_handed_on_in_pieces() {
    let data = folder();
    let change = |config: &mut switchboard_host::config::Config| {
        config.hub.channels.waiting = Count::new(3);
        config.hub.channels.joined = Size::from_kibibytes(1);
    };
    let running = server_with(data.path(), change).await;
    let (id, _) = say(&running, "bob", "wait").await;
    let child = call(&running, "bob", 1).await;
    let text = |letter: &str| letter.repeat(400);
    for letter in ["a", "b", "c"] {
        say(&running, "bob", &text(letter)).await;
    }
    let message = json!({ "channel": "C1", "text": "d" });
    let (status, refusal) = running.post("/api/channels/slack/messages", "bob", &message).await;
    assert_eq!((status, &refusal["code"]), (429, &json!("TOO_MANY")), "{refusal}");
    assert!(refusal.to_string().contains("hub.channels.waiting"), "{refusal}");
    answer(&running, "bob", "echo", &child, "done").await;
    completed(&running, "bob", &id).await;
    let expected = ["wait".to_owned(), format!("[1/2] {}\n[2/2] {}", text("a"), text("b")), text("c")];
    assert_eq!(heard(&running, "bob").await, expected);
    running.stop().await;
}
