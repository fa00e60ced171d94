//! Agents built with Python's SDK, which read and write files of v0.3 REST as base64 twice.

use serde_json::{Value, json};
use switchboard_a2a::{ListRequest, Part, PartContent, RestFiles, SendRequest, SendResponse, Task, Version};
use switchboard_client::{Binding, CallContext, Update};

use super::script::{Peer, events, json as answer, says};
use crate::world::{client, say};

const BYTES: [u8; 4] = [0, 255, 254, 10];
const ONCE: &str = "AP/+Cg==";
const TWICE: &str = "QVAvK0NnPT0=";

fn old_card() -> Value {
    json!({
        "name": "peer", "description": "A peer", "version": "1", "protocolVersion": "0.3.0",
        "url": "/rest", "preferredTransport": "HTTP+JSON",
        "capabilities": {"streaming": true},
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"], "skills": [],
    })
}

fn artifact(file: &str) -> Value {
    json!({"artifactId": "a", "parts": [{"file": {"fileWithBytes": file}}]})
}

/// An agent that sends a file, whose card is served by the server that is named.
async fn python(server: &'static str, file: &'static str) -> Peer {
    Peer::start(move |asked, _| {
        let task = |state: &str| {
            json!({"id": "t", "contextId": "c", "status": {"state": state}, "artifacts": [artifact(file)]})
        };
        let done = task("TASK_STATE_COMPLETED");
        match asked.line().as_str() {
            line if line.contains("/.well-known/") => {
                let headers = format!("content-type: application/json\r\nserver: {server}");
                says(200, &headers, &old_card().to_string())
            }
            "POST /rest/v1/message:send" => answer(200, &json!({"task": done})),
            "POST /rest/v1/message:stream" => {
                let update = json!({"taskId": "t", "contextId": "c", "artifact": artifact(file)});
                let status = json!({"state": "TASK_STATE_COMPLETED"});
                let end = json!({"taskId": "t", "contextId": "c", "status": status, "final": true});
                let begun = json!({"id": "t", "contextId": "c", "status": {"state": "TASK_STATE_WORKING"}});
                let frames =
                    [json!({"task": begun}), json!({"artifactUpdate": update}), json!({"statusUpdate": end})];
                events(&frames.map(|frame| format!("data: {frame}\n\n")))
            }
            "GET /rest/v1/tasks" => answer(200, &json!({"tasks": [done]})),
            _ => answer(200, &done),
        }
    })
    .await
}

fn with_file() -> SendRequest {
    let mut request = say("a file");
    request.message.parts.push(Part::new(PartContent::Raw(BYTES.to_vec())));
    request
}

fn made(task: &Task) -> &PartContent {
    &task.artifacts[0].parts[0].content
}

/// What was sent as a file.
fn sent(peer: &Peer, at: usize) -> Value {
    peer.asked()[at].json()["message"]["content"][1]["file"]["fileWithBytes"].clone()
}

#[tokio::test]
async fn files_reach_an_agent_of_pythons_sdk_and_come_back() {
    let peer = python("uvicorn", TWICE).await;
    let client = client(peer.url(), |peer| (peer.binding, peer.version) = (Some(Binding::Rest), Some(Version::V03)));
    let context = CallContext::default();
    let content = PartContent::Raw(BYTES.to_vec());
    let SendResponse::Task(task) = client.send(&context, with_file()).await.unwrap() else { panic!("no task") };
    assert_eq!((made(&task), sent(&peer, 0)), (&content, json!(TWICE)));
    let mut stream = client.stream(&context, with_file()).await.unwrap();
    let mut streamed = Vec::new();
    while let Some(update) = stream.next().await.unwrap() {
        if let Update::Event(event) = update {
            streamed.push(format!("{event:?}"));
        }
    }
    assert!(streamed.iter().any(|event| event.contains(&format!("{content:?}"))), "{streamed:?}");
    let outcome = stream.response().unwrap();
    assert_eq!((made(outcome.task().unwrap()), sent(&peer, 1)), (&content, json!(TWICE)));
    assert_eq!(made(&client.get(&context, &"t".into(), None).await.unwrap()), &content);
    assert_eq!(made(&client.cancel(&context, &"t".into(), None).await.unwrap()), &content);
    assert_eq!(made(&client.list(&context, ListRequest::default()).await.unwrap().tasks[0]), &content);
}

#[tokio::test]
async fn files_of_other_agents_are_encoded_once_and_a_setting_says_otherwise() {
    let doubled = PartContent::Raw(ONCE.into());
    let plain = PartContent::Raw(BYTES.to_vec());
    for (server, file, setting, on_the_wire, content) in [
        // Its file is base64 that is meant as such.
        ("hypercorn-h11", TWICE, RestFiles::Auto, ONCE, &doubled),
        ("uvicorn", TWICE, RestFiles::Once, ONCE, &doubled),
        ("nginx", TWICE, RestFiles::Twice, TWICE, &plain),
        // Built with something else after all: what has no second layer loses none.
        ("uvicorn", ONCE, RestFiles::Auto, TWICE, &plain),
    ] {
        let peer = python(server, file).await;
        let client = client(peer.url(), |peer| {
            (peer.binding, peer.version) = (Some(Binding::Rest), Some(Version::V03));
            peer.rest_files = setting;
        });
        let answered = client.send(&CallContext::default(), with_file()).await.unwrap();
        let SendResponse::Task(task) = answered else { panic!("no task") };
        assert_eq!((made(&task), sent(&peer, 0)), (content, json!(on_the_wire)), "{server} {setting:?}");
    }
}
