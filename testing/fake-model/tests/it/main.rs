//! The endpoint as an agent meets it: over HTTP, on every wire.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

mod client;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fake_model::{FakeModel, Wire};
use hyper::StatusCode;
use serde_json::{Value, json};

use crate::client::{post, send};

const WIRES: [Wire; 4] =
    [Wire::AnthropicMessages, Wire::OpenAiResponses, Wire::OpenAiChatCompletions, Wire::GeminiGenerateContent];

/// A hang guard: what has not happened after so long never will.
const HANG_GUARD: Duration = Duration::from_secs(300);

/// Where a wire is spoken, and the smallest body that asks this with one tool.
fn asking(wire: Wire, prompt: &str) -> (&'static str, Value) {
    match wire {
        Wire::AnthropicMessages => {
            let message = json!({ "role": "user", "content": prompt });
            let tools = json!([{ "name": "Bash" }]);
            ("/v1/messages?beta=true", json!({ "model": "m", "stream": true, "tools": tools, "messages": [message] }))
        }
        Wire::OpenAiResponses => {
            let content = json!([{ "type": "input_text", "text": prompt }]);
            let message = json!({ "type": "message", "role": "user", "content": content });
            let tools = json!([{ "name": "exec_command" }]);
            ("/v1/responses", json!({ "model": "m", "stream": true, "tools": tools, "input": [message] }))
        }
        Wire::OpenAiChatCompletions => {
            let message = json!({ "role": "user", "content": prompt });
            let tools = json!([{ "type": "function", "function": { "name": "bash" } }]);
            ("/v1/chat/completions", json!({ "model": "m", "stream": true, "tools": tools, "messages": [message] }))
        }
        Wire::GeminiGenerateContent => {
            let content = json!({ "role": "user", "parts": [{ "text": prompt }] });
            let tools = json!([{ "functionDeclarations": [{ "name": "run_shell_command" }] }]);
            ("/v1beta/models/m:streamGenerateContent?alt=sse", json!({ "tools": tools, "contents": [content] }))
        }
    }
}

/// The data of the events of an answer.
fn events(body: &str) -> Vec<Value> {
    let data = body.lines().filter_map(|line| line.strip_prefix("data: ")).filter(|data| *data != "[DONE]");
    data.map(|data| serde_json::from_str(data).unwrap()).collect()
}

/// The pieces of text in the events of an answer.
fn said(wire: Wire, body: &str) -> String {
    let pointer = match wire {
        Wire::AnthropicMessages => "/delta/text",
        Wire::OpenAiResponses => "/delta",
        Wire::OpenAiChatCompletions => "/choices/0/delta/content",
        Wire::GeminiGenerateContent => "/candidates/0/content/parts/0/text",
    };
    events(body).iter().filter_map(|event| event.pointer(pointer)?.as_str().map(str::to_owned)).collect()
}

/// What an answer that is complete ends with.
fn end(wire: Wire) -> &'static str {
    match wire {
        Wire::AnthropicMessages => "message_stop",
        Wire::OpenAiResponses => "response.completed",
        Wire::OpenAiChatCompletions => "data: [DONE]",
        Wire::GeminiGenerateContent => "\"finishReason\":\"STOP\"",
    }
}

#[tokio::test]
async fn every_wire_answers_and_every_request_is_remembered() {
    let model = FakeModel::start().unwrap();
    for wire in WIRES {
        let (path, body) = asking(wire, "Hello. [[say Hello yourself]]");
        let (status, answer) = post(&model, path, &body).await;
        assert_eq!(status, StatusCode::OK);
        assert_eq!(said(wire, &answer), "Hello yourself", "{wire:?}: {answer}");
        assert!(answer.contains(end(wire)), "{wire:?}: {answer}");
    }
    let requests = model.requests();
    assert_eq!(requests.iter().map(|seen| seen.wire).collect::<Vec<_>>(), WIRES.map(Some));
    for seen in requests {
        assert_eq!((seen.model.as_str(), seen.prompt.as_str()), ("m", "Hello. [[say Hello yourself]]"));
        assert_eq!((seen.key.as_deref(), seen.is_side, seen.tools.len()), (Some("fake-key"), false, 1));
    }
}

#[tokio::test]
async fn every_wire_calls_the_shell() {
    let model = FakeModel::start().unwrap();
    for (wire, name) in WIRES.into_iter().zip(["Bash", "exec_command", "bash", "run_shell_command"]) {
        let (path, body) = asking(wire, "[[bash echo hi]]");
        let (_, answer) = post(&model, path, &body).await;
        assert!(answer.contains(&format!("\"name\":\"{name}\"")) && answer.contains("echo hi"), "{wire:?}: {answer}");
        assert!(answer.contains(end(wire)), "{wire:?}: {answer}");
    }
}

#[tokio::test]
async fn every_wire_thinks() {
    let model = FakeModel::start().unwrap();
    for wire in WIRES {
        let (path, body) = asking(wire, "[[think deeply now]] [[say so]]");
        let (_, answer) = post(&model, path, &body).await;
        assert!(answer.contains("deeply now") && answer.contains(end(wire)), "{wire:?}: {answer}");
    }
}

#[tokio::test]
async fn slow_pieces_come_one_by_one_with_the_time_they_were_sent_at() {
    let model = FakeModel::start().unwrap();
    for wire in WIRES {
        let before = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros();
        let (path, body) = asking(wire, "[[slow 3 15]]");
        let (_, answer) = post(&model, path, &body).await;
        let text = said(wire, &answer);
        let times: Vec<u128> = text.lines().map(|line| line.split(' ').next_back().unwrap().parse().unwrap()).collect();
        assert_eq!(times.len(), 3, "{wire:?}: {text}");
        assert!(
            times.is_sorted_by(|earlier, later| earlier + 14_000 < *later) && times[0] > before,
            "{wire:?}: {text}"
        );
    }
}

#[tokio::test]
async fn a_status_comes_so_often_on_every_wire() {
    let model = FakeModel::start().unwrap();
    for wire in WIRES {
        let (path, body) = asking(wire, "[[status 429 2]] [[say at last]]");
        for _ in 0..2 {
            let (status, answer) = post(&model, path, &body).await;
            assert_eq!(status, StatusCode::TOO_MANY_REQUESTS);
            assert!(answer.contains("fake 429"), "{wire:?}: {answer}");
        }
        assert_eq!(said(wire, &post(&model, path, &body).await.1), "at last");
    }
}

#[tokio::test]
async fn a_cut_stream_has_no_end() {
    let model = FakeModel::start().unwrap();
    for wire in WIRES {
        let (path, body) = asking(wire, "[[cut 1]] [[say abcdef]]");
        let (status, answer) = post(&model, path, &body).await;
        assert_eq!((status, said(wire, &answer).as_str()), (StatusCode::OK, "abc"), "{wire:?}");
        assert!(!answer.contains(end(wire)), "{wire:?}: {answer}");
        assert!(post(&model, path, &body).await.1.contains(end(wire)));
    }
}

#[tokio::test]
async fn a_hanging_request_is_open_until_its_client_goes_away() {
    let model = FakeModel::start().unwrap();
    let (path, body) = asking(Wire::OpenAiResponses, "[[hang]]");
    let (address, body) = (model.address(), body.to_string());
    let request = tokio::spawn(async move { send(address, "POST", path, body).await });
    model.wait_for(HANG_GUARD, |seen| seen.prompt == "[[hang]]").await.unwrap();
    assert!(!request.is_finished(), "it was answered");
    request.abort();
    assert!(model.wait_until_idle(HANG_GUARD).await);
    assert_eq!(model.open(), 0);
}

#[tokio::test]
async fn an_open_request_is_counted() {
    let model = FakeModel::start().unwrap();
    let (path, body) = asking(Wire::AnthropicMessages, "[[hang]]");
    let (address, body) = (model.address(), body.to_string());
    let request = tokio::spawn(async move { send(address, "POST", path, body).await });
    model.wait_for(HANG_GUARD, |seen| seen.prompt == "[[hang]]").await.unwrap();
    assert_eq!(model.open(), 1);
    assert!(!model.wait_until_idle(Duration::from_millis(20)).await);
    request.abort();
    assert!(model.wait_until_idle(HANG_GUARD).await);
}

#[tokio::test]
async fn side_questions_get_a_harmless_text() {
    let model = FakeModel::start().unwrap();
    for wire in WIRES {
        let (path, mut body) = asking(wire, "Title for: [[hang]]");
        body["tools"] = json!([]);
        assert_eq!(said(wire, &post(&model, path, &body).await.1), "Fake title", "{wire:?}");
    }
    assert!(model.requests().iter().all(|seen| seen.is_side));
}

#[tokio::test]
async fn two_wires_also_answer_in_one_piece() {
    let model = FakeModel::start().unwrap();
    let (path, mut body) = asking(Wire::AnthropicMessages, "[[cut]] [[think hm]] [[say whole]]");
    body["stream"] = json!(false);
    let answer: Value = serde_json::from_str(&post(&model, path, &body).await.1).unwrap();
    assert_eq!((&answer["content"][1]["text"], &answer["stop_reason"]), (&json!("whole"), &json!("end_turn")));

    let (_, body) = asking(Wire::GeminiGenerateContent, "[[bash ls]]");
    let answer = post(&model, "/v1beta/models/m:generateContent", &body).await.1;
    let answer: Value = serde_json::from_str(&answer).unwrap();
    assert_eq!(answer["candidates"][0]["content"]["parts"][0]["functionCall"]["args"]["command"], json!("ls"));

    let counted: Value = serde_json::from_str(&post(&model, "/v1beta/models/m:countTokens", &body).await.1).unwrap();
    assert_eq!(counted, json!({ "totalTokens": 11 }));

    let (path, mut body) = asking(Wire::OpenAiResponses, "hi");
    body["stream"] = json!(false);
    assert_eq!(post(&model, path, &body).await.0, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn nothing_else_is_served_and_a_stray_call_shows() {
    let model = FakeModel::start().unwrap();
    let (status, answer) = send(model.address(), "GET", "/v1/models", String::new()).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    assert!(answer.contains("does not serve GET /v1/models"), "{answer}");
    let (status, answer) = send(model.address(), "POST", "/v1/responses", "{".to_owned()).await;
    assert!(status == StatusCode::BAD_REQUEST && answer.contains("not JSON"), "{answer}");
    let strays: Vec<_> = model.requests().into_iter().filter(|seen| seen.wire.is_none()).collect();
    assert_eq!(strays.iter().map(|seen| seen.path.as_str()).collect::<Vec<_>>(), ["/v1/models"]);
}

#[tokio::test]
async fn it_ends_when_it_is_dropped_and_says_what_did_not_come() {
    let model = FakeModel::start().unwrap();
    let missed = model.wait_for(Duration::from_millis(5), |_| true).await.unwrap_err();
    assert!(missed.requests.is_empty());
    let address = model.address();
    drop(model);
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
}
