//! What a message comes to, as a kind that a program can act on, also where that is not what was wanted.

use serde_json::json;
use switchboard_a2a::TaskState;
use switchboard_client::{CallContext, Conversation, response_text};

use super::script::{COMPLETED, Reply, agent, error, event, events, result, task};
use crate::world::{client, say};

fn ends_with(state: &'static str, streamed: bool) -> Reply {
    let mut task = task(state, "");
    task["status"]["message"] = json!({"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "because"}]});
    let update = json!({"statusUpdate": {"taskId": "t", "contextId": "c", "status": task["status"]}});
    match streamed {
        true => {
            task["status"] = json!({"state": "TASK_STATE_WORKING"});
            events(&[event(json!({"task": task})), event(update)])
        }
        false => result(json!({"task": task})),
    }
}

#[tokio::test]
async fn refusals_and_requests_for_access_are_told_as_what_they_are() {
    for state in ["TASK_STATE_REJECTED", "TASK_STATE_AUTH_REQUIRED"] {
        let peer = agent(false, move |asked, _| match asked.what().as_str() {
            "SendMessage" => ends_with(state, false),
            "SendStreamingMessage" => ends_with(state, true),
            _ => {
                let mut task = task(state, "");
                task["status"]["message"] =
                    json!({"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "because"}]});
                result(task)
            }
        })
        .await;
        let client = client(peer.url(), |_| {});
        let sent = client.send(&CallContext::default(), say("hello")).await.unwrap();
        let followed = client.stream(&CallContext::default(), say("hello")).await.unwrap();
        let streamed = followed.finish().await.unwrap();
        for outcome in [sent, streamed] {
            assert_eq!(outcome.state().map(TaskState::as_str), Some(state));
            assert!(!outcome.is_success(), "{outcome:?}");
            assert_eq!(response_text(&outcome), "because");
        }
    }
}

#[tokio::test]
async fn a_conversation_goes_on_after_its_task_is_gone() {
    let refusals = [(-32001, "no such task"), (-32004, "it has ended"), (-32602, "task t is in terminal state")];
    for (code, message) in refusals {
        let peer = agent(false, move |asked, _| match asked.json()["params"]["message"]["taskId"].as_str() {
            Some(_) => error(code, message),
            None => result(json!({"task": task(COMPLETED, "done")})),
        })
        .await;
        let client = client(peer.url(), |_| {});
        let mut conversation = Conversation { context_id: Some("c".into()), task_id: Some("t".into()) };
        let mut request = say("hello");
        conversation.set_ids(&mut request.message);
        let refused = client.send(&CallContext::default(), request).await.unwrap_err();
        assert!(conversation.record_refusal(&refused), "{refused}");
        assert!(!conversation.record_refusal(&refused), "there is nothing more to forget");
        let mut request = say("hello");
        conversation.set_ids(&mut request.message);
        client.send(&CallContext::default(), request).await.unwrap();
        let asked = peer.asked()[1].json()["params"]["message"].clone();
        assert_eq!((asked["contextId"].as_str(), asked["taskId"].as_str()), (Some("c"), None));
    }
}
