//! Decisions: what each kind of agent gets, what does not fit a question, and that the first one counts.

use serde_json::{Value, json};

use super::{approve, asked, decide, ended, items, server, words};
use crate::running::folder;

#[tokio::test]
async fn each_kind_of_agent_gets_the_decision_in_its_own_form() {
    let data = folder();
    let running = server(data.path()).await;
    let approval = |decision: &str, reason: &str| {
        let reason = if reason.is_empty() { String::new() } else { format!(r#","reason":"{reason}""#) };
        format!(r#"{{"approvalId":"a-1","decision":"{decision}"{reason}}}"#)
    };
    for (question, decision, right) in [
        ("approval", approve(), approval("allow", "")),
        ("approval", json!({ "decision": "approve", "always": true }), approval("always", "")),
        ("approval", json!({ "decision": "reject", "feedback": "no" }), approval("deny", "no")),
        ("approval", json!({ "decision": "answer", "option": "always" }), approval("always", "")),
        ("gate", json!({ "decision": "modify", "text": "only the docs" }), "Modify: only the docs".to_owned()),
        ("gate", approve(), "Approve: approved".to_owned()),
        ("gate", json!({ "decision": "reject", "feedback": "too late" }), "Reject: too late".to_owned()),
    ] {
        let id = asked(&running, "bob", "echo", question).await;
        let (status, answer) = decide(&running, "oli", &id, decision).await;
        assert_eq!((status, &answer["by"]), (200, &json!("oli")), "{answer}");
        assert_eq!(words(&ended(&running, &id).await), right);
    }
    // Any other one gets words, and data beside them.
    for (question, decision, said, more) in [
        ("ask", json!({ "decision": "answer", "text": "go on" }), "go on", ("decision", "answer")),
        ("choose", json!({ "decision": "answer", "option": "b" }), "b", ("option", "b")),
        ("ask", json!({ "decision": "reject", "feedback": "stop" }), "stop", ("feedback", "stop")),
        ("ask", json!({ "decision": "answer", "parts": [{ "text": "go" }] }), "go", ("type", "hitl_response")),
    ] {
        let id = asked(&running, "bob", "echo", question).await;
        assert_eq!(decide(&running, "bob", &id, decision).await.0, 200);
        let task = ended(&running, &id).await;
        let (text, data) = words(&task).split_once(" + ").unwrap();
        let data: Value = serde_json::from_str(data).unwrap();
        assert_eq!((text, &data[more.0], &data["decidedBy"]), (said, &json!(more.1), &json!("bob")), "{data}");
        assert_eq!(data["correlationId"], task["correlationId"]);
    }
    assert!(items(&running, "ann", "").await.is_empty());
    running.stop().await;
}

#[tokio::test]
async fn a_decision_that_does_not_fit_its_question_is_refused_and_leaves_it_open() {
    let data = folder();
    let running = server(data.path()).await;
    let questions = ["ask", "choose", "gate", "approval"];
    let mut ids = Vec::new();
    for question in questions {
        ids.push(asked(&running, "bob", "echo", question).await);
    }
    // Shown in part: a yes has to say that this was seen.
    ids.push(asked(&running, "bob", "echo", "approval allow_incomplete").await);
    let hidden = asked(&running, "bob", "other", "approval").await;
    for (at, decision, key) in [
        (0, json!({}), "decision"),
        (0, json!({ "decision": "yes" }), "decision"),
        (0, json!({ "decision": "answer" }), "text"),
        (0, json!({ "decision": "modify", "feedback": "so" }), "text"),
        (0, json!({ "decision": "approve", "text": "so" }), "text"),
        (0, json!({ "decision": "approve", "always": true }), "always"),
        (0, json!({ "decision": "answer", "option": "red" }), "option"),
        (0, json!({ "decision": "answer", "text": "a", "parts": [{ "text": "b" }] }), "parts"),
        (0, json!({ "decision": "answer", "text": 7 }), "text"),
        (0, json!({ "decision": "answer", "words": "a" }), "words"),
        (1, json!({ "decision": "answer", "option": "green" }), "option"),
        (2, json!({ "decision": "answer", "text": "yes" }), "decision"),
        (2, json!({ "decision": "approve", "option": "red" }), "option"),
        (3, json!({ "decision": "modify", "text": "ls" }), "decision"),
        (3, json!({ "decision": "answer", "text": "sure" }), "option"),
        (3, json!({ "decision": "reject", "option": "allow" }), "option"),
        (3, json!({ "decision": "approve", "option": "deny" }), "option"),
        (3, json!({ "decision": "reject", "always": true }), "always"),
        (4, approve(), "option"),
    ] {
        let (status, refusal) = decide(&running, "oli", &ids[at], decision.clone()).await;
        assert_eq!((status, &refusal["problems"][0]["key"]), (400, &json!(key)), "{decision} {refusal}");
    }
    assert_eq!(items(&running, "ann", "").await.len(), ids.len() + 1);
    assert_eq!(decide(&running, "oli", &hidden, approve()).await.0, 200);
    running.stop().await;
}

#[tokio::test]
async fn the_first_decision_counts_and_later_ones_learn_who_was_first() {
    let data = folder();
    let running = server(data.path()).await;
    let id = asked(&running, "bob", "echo", "gate").await;
    let (_, first) = decide(&running, "nan", &id, approve()).await;
    let (status, again) = decide(&running, "nan", &id, approve()).await;
    assert_eq!((status, &again), (200, &first), "the same words of the same key");
    for (key, decision) in [("oli", approve()), ("nan", json!({ "decision": "reject" }))] {
        let (status, refusal) = decide(&running, key, &id, decision).await;
        assert_eq!((status, &refusal["code"]), (409, &json!("ALREADY_DECIDED")), "{refusal}");
        assert_eq!(
            [&refusal["by"], &refusal["at"], &refusal["decision"]],
            [&first["by"], &first["at"], &json!("approve")]
        );
    }
    // Its owner has answered it over A2A.
    let id = asked(&running, "bob", "echo", "ask").await;
    let task = id.rsplit_once('.').unwrap().0;
    running.send_with("bob", "echo", json!({ "taskId": task, "parts": [{ "text": "go" }] }), &[]).await;
    let (status, refusal) = decide(&running, "oli", &id, approve()).await;
    assert_eq!((status, &refusal["by"], &refusal["decision"]), (409, &json!("bob"), &json!("answer")), "{refusal}");
    // Its task was stopped.
    let id = asked(&running, "bob", "echo", "ask").await;
    let task = id.rsplit_once('.').unwrap().0;
    assert_eq!(running.post(&format!("/api/tasks/{task}:cancel"), "oli", &json!({})).await.0, 200);
    let (status, refusal) = decide(&running, "oli", &id, approve()).await;
    assert_eq!((status, &refusal["code"], &refusal["by"]), (409, &json!("ALREADY_DECIDED"), &Value::Null), "{refusal}");
    let (_, shown) = running.get(&format!("/api/inbox/{id}"), "bob").await;
    assert_eq!((&shown["state"], &shown["decided"]), (&json!("closed"), &Value::Null));
    running.stop().await;
}
