//! What the time does to questions that nobody answers.

use std::time::Duration;

use serde_json::{Value, json};
use switchboard_engine::clock::SimulatedClock;

use super::{approve, asked, decide, ended, items, server_at, words};
use crate::running::{Running, START, folder};

async fn lines(running: &Running, topic: &str, key: &str) -> Vec<Value> {
    let (_, page) = running.get(&format!("/api/feed?from=oldest&pageSize=100&topic={topic}"), key).await;
    page["items"].as_array().unwrap().iter().map(|item| item["payload"].clone()).collect()
}

/// Waits until there are so many lines of a topic. The clock goes on, so that what is due happens.
async fn told(running: &Running, topic: &str, count: usize) -> Vec<Value> {
    let told = tokio::time::timeout(crate::HANG_GUARD, async {
        loop {
            let found = lines(running, topic, "ann").await;
            if found.len() >= count {
                return found;
            }
            running.clock.advance(Duration::from_millis(500));
            tokio::task::yield_now().await;
        }
    });
    told.await.unwrap()
}

#[tokio::test]
async fn a_question_that_its_caller_leaves_becomes_the_operators_once_and_its_agent_has_an_alert_until_it_is_answered()
{
    let data = folder();
    let clock = SimulatedClock::at(START);
    let running = server_at(data.path(), &clock).await;
    let plain = asked(&running, "bob", "echo", "ask").await;
    // For operators from the beginning: no line, but it waits too.
    let gate = asked(&running, "bob", "other", "gate").await;
    assert!(lines(&running, "alert.inbox_waiting.fired", "ann").await.is_empty());
    clock.advance(Duration::from_secs(5 * 60));
    assert_eq!(told(&running, "alert.inbox_waiting.fired", 2).await.len(), 2);
    let escalated = told(&running, "inbox.escalated.%23", 1).await;
    assert_eq!(escalated.len(), 1, "{escalated:?}");
    assert_eq!([&escalated[0]["id"], &escalated[0]["stage"]], [&json!(plain), &json!("operator")]);
    for (key, right) in [("bob", 1), ("bea", 0), ("eva", 1)] {
        assert_eq!(lines(&running, "inbox.escalated.%23", key).await.len(), right, "{key}");
    }
    let (_, alerts) = running.get("/api/alerts", "eva").await;
    assert_eq!(alerts["items"].as_array().map(Vec::len), Some(1), "one of its agent: {alerts}");
    running.stop().await;

    // It is told once, whatever process looks.
    let running = server_at(data.path(), &clock).await;
    assert_eq!(decide(&running, "oli", &gate, approve()).await.0, 200);
    let resolved = told(&running, "alert.inbox_waiting.resolved", 1).await;
    assert_eq!((resolved.len(), &resolved[0]["subject"]), (1, &json!("other")), "{resolved:?}");
    assert_eq!(decide(&running, "oli", &plain, approve()).await.0, 200);
    told(&running, "alert.inbox_waiting.resolved", 2).await;
    assert_eq!(lines(&running, "inbox.escalated.%23", "ann").await.len(), 1);
    assert_eq!(lines(&running, "alert.inbox_waiting.fired", "ann").await.len(), 2);
    running.stop().await;
}

#[tokio::test]
async fn questions_that_nobody_answers_end_as_they_say() {
    let data = folder();
    let clock = SimulatedClock::at(START);
    let running = server_at(data.path(), &clock).await;
    let mut ids = Vec::new();
    for then in ["fail", "reject", "approve", "escalate"] {
        ids.push(asked(&running, "bob", "echo", &format!("gate {then} 60")).await);
    }
    let escalated = told(&running, "inbox.escalated.*", 1).await;
    assert_eq!([&escalated[0]["id"], &escalated[0]["stage"]], [&json!(ids[3]), &json!("escalated")], "{escalated:?}");
    let failed = ended(&running, &ids[0]).await;
    assert_eq!(failed["state"], json!("failed"));
    for (id, right) in [(&ids[1], "Reject: rejected: "), (&ids[2], "Approve: approved: ")] {
        assert!(words(&ended(&running, id).await).starts_with(right), "{right}");
        let (status, refusal) = decide(&running, "oli", id, approve()).await;
        assert_eq!((status, &refusal["by"], refusal["at"].is_string()), (409, &Value::Null, true), "{refusal}");
    }
    let open = items(&running, "vic", "?stage=escalated").await;
    assert_eq!((open.len(), &open[0]["id"]), (1, &json!(ids[3])));
    assert_eq!(decide(&running, "oli", &ids[3], approve()).await.0, 200);
    assert_eq!(words(&ended(&running, &ids[3]).await), "Approve: approved");
    running.stop().await;
}
