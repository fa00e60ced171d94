//! An agent of version 0.3 over JSON-RPC that does no more than that version demands, apart from what it is given. All of
//! its tasks are done at once, or ask something at once.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::wire::{Asked, http};
use super::{finish, notify};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Old {
    /// Without webhooks, and without the methods for them.
    Plain,
    /// A message to a task that does not exist begins it.
    TasksOfAnyId,
    CardWithoutTransport,
    /// Every task asks something, which ends its stream.
    Asks,
    /// The same, and the last status does not say so.
    AsksWithoutFinal,
    /// The stream stays open, and the status rightly says that it does.
    AsksAndStays,
    WithWebhooks,
    DeletesWithoutResult,
}

impl Old {
    fn asks(self) -> bool {
        matches!(self, Self::Asks | Self::AsksWithoutFinal | Self::AsksAndStays)
    }

    fn has_webhooks(self) -> bool {
        matches!(self, Self::WithWebhooks | Self::DeletesWithoutResult)
    }
}

#[derive(Default)]
struct Kept {
    tasks: Vec<Value>,
    /// Each with its task.
    webhooks: Vec<Value>,
}

/// Starts an agent; its address.
pub(crate) async fn start(old: Old) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let kept = Arc::new(Mutex::new(Kept::default()));
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            // A client that has gone is no fault of the agent.
            tokio::spawn(serve(old, socket, Arc::clone(&kept)));
        }
    });
    format!("http://{address}")
}

async fn serve(old: Old, mut socket: TcpStream, kept: Arc<Mutex<Kept>>) -> std::io::Result<()> {
    let Some(asked) = Asked::read(&mut socket).await? else { return Ok(()) };
    let answer = match asked.path.as_str() {
        "/.well-known/agent-card.json" => http(200, JSON, &card(old, asked.header("host").unwrap()).to_string()),
        "/rpc" => {
            let answered = answer(old, &asked, &mut kept.lock().unwrap());
            if let (Ok(task), true) = (&answered, asked.method == "message/stream") {
                return stream(old, socket, &asked, task).await;
            }
            let mut body = match answered {
                Ok(result) => json!({"jsonrpc": "2.0", "id": asked.id, "result": result}),
                Err(code) => {
                    json!({"jsonrpc": "2.0", "id": asked.id, "error": {"code": code, "message": "No."}})
                }
            };
            if old == Old::DeletesWithoutResult && asked.method.ends_with("/delete") {
                drop(body.as_object_mut().unwrap().remove("result"));
            }
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
        "url": format!("http://{host}/rpc"), "preferredTransport": "JSONRPC",
        "capabilities": {"streaming": old.asks(), "pushNotifications": old.has_webhooks()},
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
        "skills": [{"id": "talk", "name": "Talk", "description": "Talks", "tags": ["talk"]}],
    });
    if old == Old::CardWithoutTransport {
        card.as_object_mut().unwrap().remove("preferredTransport");
    }
    card
}

/// The stream of a task that asks something: the task, and the question.
async fn stream(old: Old, mut socket: TcpStream, asked: &Asked, task: &Value) -> std::io::Result<()> {
    let mut begun = task.clone();
    begun["status"] = json!({"state": "working"});
    let question = json!({
        "kind": "status-update", "taskId": task["id"], "contextId": "c", "status": task["status"],
        "final": old == Old::Asks,
    });
    let mut text = "HTTP/1.1 200 So\r\nconnection: close\r\ncontent-type: text/event-stream\r\n\
                    cache-control: no-cache\r\nx-accel-buffering: no\r\n\r\n"
        .to_owned();
    for result in [&begun, &question] {
        let frame = json!({"jsonrpc": "2.0", "id": asked.id, "result": result});
        text.push_str(&format!("data: {frame}\n\n"));
    }
    socket.write_all(text.as_bytes()).await?;
    if old == Old::AsksAndStays {
        return socket.read_to_end(&mut Vec::new()).await.map(drop);
    }
    socket.shutdown().await
}

fn answer(old: Old, asked: &Asked, kept: &mut Kept) -> Result<Value, i32> {
    asked.problem.map_or(Ok(()), Err)?;
    let params = &asked.params;
    let place = |id: &Value| kept.tasks.iter().position(|task| task["id"] == *id).ok_or(-32001);
    let message = &params["message"];
    match asked.method.as_str() {
        "message/stream" if !old.asks() => Err(-32004),
        "message/send" | "message/stream" if message.is_null() => Err(-32602),
        "message/send" | "message/stream" => {
            let id = match message["taskId"].as_str() {
                None => format!("t{}", kept.tasks.len()),
                Some(id) if old == Old::TasksOfAnyId => id.to_owned(),
                Some(_) => return place(&message["taskId"]).and(Err(-32602)),
            };
            let state = if old.asks() { "input-required" } else { "completed" };
            let mut task = json!({
                "kind": "task", "id": id, "contextId": "c", "history": [message],
                "status": {"state": state, "timestamp": "2026-01-01T00:00:00+00:00"},
            });
            if !old.asks() {
                task["artifacts"] = json!([{"artifactId": "a", "parts": [{"kind": "text", "text": "done"}]}]);
            }
            if let Some(url) = params["configuration"]["pushNotificationConfig"]["url"].as_str() {
                tokio::spawn(notify(url.to_owned(), task.clone()));
            }
            kept.tasks.push(task.clone());
            Ok(task)
        }
        "tasks/get" => place(&params["id"]).map(|place| kept.tasks[place].clone()),
        "tasks/cancel" => {
            let task = place(&params["id"]).map(|place| &mut kept.tasks[place])?;
            if task["status"]["state"] != "input-required" {
                return Err(-32002);
            }
            task["status"] = json!({"state": "canceled"});
            Ok(task.clone())
        }
        method if old.has_webhooks() => kept.webhook(method, params),
        _ => Err(-32601),
    }
}

impl Kept {
    fn webhook(&mut self, method: &str, params: &Value) -> Result<Value, i32> {
        let is_it = |webhook: &Value| {
            webhook["taskId"] == params["id"]
                && webhook["pushNotificationConfig"]["id"] == params["pushNotificationConfigId"]
        };
        match method.strip_prefix("tasks/pushNotificationConfig/") {
            Some("set") => {
                self.webhooks.push(params.clone());
                Ok(params.clone())
            }
            Some("get") => self.webhooks.iter().find(|webhook| is_it(webhook)).cloned().ok_or(-32001),
            Some("list") => {
                Ok(self.webhooks.iter().filter(|webhook| webhook["taskId"] == params["id"]).cloned().collect())
            }
            Some("delete") => {
                self.webhooks.retain(|webhook| !is_it(webhook));
                Ok(Value::Null)
            }
            _ => Err(-32601),
        }
    }
}
