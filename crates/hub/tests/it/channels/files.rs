//! `channels.yaml`: whom a channel talks to, and what keeps its agent although the file says otherwise by now.

use std::path::Path;
use std::time::Duration;

use serde_json::json;

use super::{call, calls, completed, server, tell, until};
use crate::running::{Running, folder};

fn write(data: &Path, text: &str) {
    std::fs::create_dir_all(data.join("workspace")).unwrap();
    std::fs::write(data.join("workspace/channels.yaml"), text).unwrap();
}

fn all_to(agent: &str) -> String {
    format!("channels:\n  - {{ platform: slack, agent: {agent} }}\n")
}

/// The agent of the newest call, once there are so many.
async fn agent(running: &Running, count: usize) -> String {
    call(running, "bob", count).await;
    calls(running, "bob").await[count - 1]["agent"].as_str().unwrap().to_owned()
}

async fn is_bound(running: &Running, agent: &str) {
    until(running, async || {
        let (_, listed) = running.get("/api/channels", "vic").await;
        (listed["items"][0]["agent"] == agent).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_channel_talks_to_the_agent_of_the_file_and_threads_and_direct_conversations_keep_theirs() {
    let data = folder();
    write(data.path(), &all_to("other"));
    let running = server(data.path()).await;
    let channel = json!({ "channel": "C1", "text": "hello" });
    let thread = json!({ "channel": "C1", "thread": "T1", "text": "hello" });
    let dm = json!({ "channel": "D1", "dm": true, "user": "ann", "text": "hello" });
    for (number, place) in [&channel, &thread, &dm].into_iter().enumerate() {
        let (id, _) = tell(&running, "bob", place).await;
        completed(&running, "bob", &id).await;
        assert_eq!(agent(&running, number + 1).await, "other");
    }
    write(data.path(), &all_to("echo"));
    is_bound(&running, "echo").await;
    for (number, place, expected) in [(4, &channel, "echo"), (5, &thread, "other"), (6, &dm, "other")] {
        let (id, _) = tell(&running, "bob", place).await;
        completed(&running, "bob", &id).await;
        assert_eq!(agent(&running, number).await, expected, "{place}");
    }
    // A quarter of an hour later the direct conversation begins anew, and the thread does not.
    // Statuses are a few milliseconds ahead of a clock that stands still.
    running.clock.advance(Duration::from_secs(15 * 60 + 1));
    for (number, place, expected) in [(7, &dm, "echo"), (8, &thread, "other")] {
        let (id, _) = tell(&running, "bob", place).await;
        completed(&running, "bob", &id).await;
        assert_eq!(agent(&running, number).await, expected, "{place}");
    }
    // What is sent into the conversation in another way goes to the same agent.
    let (_, context) = tell(&running, "bob", &thread).await;
    let sent = json!({ "message": "hello", "contextId": context });
    let (status, sent) = running.post("/api/dispatch", "bob", &sent).await;
    assert_eq!(status, 202, "{sent}");
    let (_, shown) = running.get(&format!("/api/tasks/{}", sent["taskId"].as_str().unwrap()), "bob").await;
    assert_eq!((&shown["agent"], &shown["routing"]["by"]), (&json!("other"), &json!("context")), "{shown}");
    running.stop().await;
}

#[tokio::test]
async fn a_file_that_is_wrong_leaves_the_channels_as_they_are() {
    let data = folder();
    let exact = "  - { platform: slack, channel: C2, agent: echo, debounce: 0s }\n";
    write(data.path(), &format!("{}{exact}", all_to("other")));
    let running = server(data.path()).await;
    write(data.path(), "channels: [{ platform: slack, agnt: echo }]\n");
    let listed = until(&running, async || {
        let (_, listed) = running.get("/api/channels", "vic").await;
        listed["problem"].is_string().then_some(listed)
    })
    .await;
    let problem = listed["problem"].as_str().unwrap();
    assert!(problem.contains("channels.yaml: channels[0]: unknown field `agnt`"), "{problem}");
    assert_eq!(listed["items"].as_array().unwrap().len(), 2);
    assert_eq!(running.topics("hub.config.refused", 1).await.len(), 1);
    // Who may not see the agent does not see its channel.
    let (_, limited) = running.get("/api/channels", "eva").await;
    assert_eq!(limited["items"], json!([{ "platform": "slack", "channel": "C2", "agent": "echo", "debounceMs": 0 }]));
    for (number, channel, expected) in [(1, "C1", "other"), (2, "C2", "echo")] {
        let (id, _) = tell(&running, "bob", &json!({ "channel": channel, "text": "hello" })).await;
        completed(&running, "bob", &id).await;
        assert_eq!(agent(&running, number).await, expected);
    }
    // A key that may not call the agent of the channel is refused, and is not told its name.
    let refused = running.post("/api/channels/slack/messages", "cat", &json!({ "channel": "C1", "text": "x" })).await;
    assert_eq!(refused.0, 403, "{}", refused.1);
    assert!(!refused.1.to_string().contains("other"), "{}", refused.1);
    // Mended, and then gone: what routing says counts.
    write(data.path(), &all_to("echo"));
    is_bound(&running, "echo").await;
    std::fs::remove_file(data.path().join("workspace/channels.yaml")).unwrap();
    until(&running, async || (running.get("/api/channels", "vic").await.1 == json!({ "items": [] })).then_some(()))
        .await;
    assert_eq!(running.topics("hub.channels.changed", 2).await.len(), 2);
    running.stop().await;
}
