//! An agent of version 0.3 over JSON-RPC that does no more than that version demands, apart from what it is given. All of
//! its tasks are done at once.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};

use super::finish;
use super::wire::{Asked, http};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Old {
    /// Without webhooks, and without the methods for them.
    Plain,
    /// A message to a task that does not exist begins it.
    TasksOfAnyId,
    CardWithoutTransport,
}

/// Starts an agent; its address.
pub(crate) async fn start(old: Old) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let tasks = Arc::new(Mutex::new(Vec::new()));
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            // A client that has gone is no fault of the agent.
            tokio::spawn(serve(old, socket, Arc::clone(&tasks)));
        }
    });
    format!("http://{address}")
}

async fn serve(old: Old, mut socket: TcpStream, tasks: Arc<Mutex<Vec<Value>>>) -> std::io::Result<()> {
    let Some(asked) = Asked::read(&mut socket).await? else { return Ok(()) };
    let answer = match asked.path.as_str() {
        "/.well-known/agent-card.json" => http(200, JSON, &card(old, asked.header("host").unwrap()).to_string()),
        "/rpc" => {
            let body = match answer(old, &asked, &mut tasks.lock().unwrap()) {
                Ok(result) => json!({"jsonrpc": "2.0", "id": asked.id, "result": result}),
                Err(code) => {
                    json!({"jsonrpc": "2.0", "id": asked.id, "error": {"code": code, "message": "No."}})
                }
            };
            http(200, JSON, &body.to_string())
        }
        _ => http(404, "content-type: text/plain", "nothing here"),
    };
    finish(socket, &answer).await
}

const JSON: &str = "content-type: application/json";

fn card(old: Old, host: &str) -> Value {
    let mut card = json!({
        "name": "old", "description": "An old peer", "version": "1", "protocolVersion": "0.3.0",
        "url": format!("http://{host}/rpc"), "preferredTransport": "JSONRPC", "capabilities": {},
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
        "skills": [{"id": "talk", "name": "Talk", "description": "Talks", "tags": ["talk"]}],
    });
    if old == Old::CardWithoutTransport {
        card.as_object_mut().unwrap().remove("preferredTransport");
    }
    card
}

fn answer(old: Old, asked: &Asked, tasks: &mut Vec<Value>) -> Result<Value, i32> {
    asked.problem.map_or(Ok(()), Err)?;
    let found = |id: &Value| tasks.iter().find(|task| task["id"] == *id).cloned().ok_or(-32001);
    let message = &asked.params["message"];
    match asked.method.as_str() {
        "message/send" if message.is_null() => Err(-32602),
        "message/send" => {
            let id = match message["taskId"].as_str() {
                None => format!("t{}", tasks.len()),
                Some(id) if old == Old::TasksOfAnyId => id.to_owned(),
                Some(_) => return found(&message["taskId"]).and(Err(-32602)),
            };
            let task = json!({
                "kind": "task", "id": id, "contextId": "c", "history": [message],
                "status": {"state": "completed", "timestamp": "2026-01-01T00:00:00+00:00"},
                "artifacts": [{"artifactId": "a", "parts": [{"kind": "text", "text": "done"}]}],
            });
            tasks.push(task.clone());
            Ok(task)
        }
        "message/stream" => Err(-32004),
        "tasks/get" => found(&asked.params["id"]),
        "tasks/cancel" => found(&asked.params["id"]).and(Err(-32002)),
        _ => Err(-32601),
    }
}
