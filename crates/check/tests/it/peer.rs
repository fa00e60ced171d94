//! An agent that keeps to version 1.0 over JSON-RPC, apart from the one defect it is given.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// What is wrong with an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Defect {
    Nothing,
    ListOldestFirst,
    ListWithArtifacts,
    ListByNumber,
    ListWithoutToken,
    OldCallersRefused,
    VersionIgnored,
    ErrorWithoutCode,
    ErrorWithoutInfo,
    StreamNeverCloses,
    StreamWithoutTask,
    StreamGoesOnAfterTheEnd,
    SubscribeLosesTheTask,
    SubscribeToEnded,
    HtmlForJson,
    TaskLeftAtWork,
    EndedTaskIsCanceled,
    HistoryAlways,
    OldSpellings,
    CardWithoutSkills,
    CardWithoutCaching,
    WebhooksUndeclared,
    KeyDemandedAndNotChecked,
}

#[derive(Default)]
struct Tasks {
    all: Vec<Value>,
    clock: u32,
}

/// Starts an agent; its address.
pub(crate) async fn start(defect: Defect) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let tasks = Arc::new(Mutex::new(Tasks::default()));
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            // A client that has gone is no fault of the agent.
            tokio::spawn(serve(socket, defect, Arc::clone(&tasks)));
        }
    });
    format!("http://{address}")
}

async fn serve(mut socket: TcpStream, defect: Defect, tasks: Arc<Mutex<Tasks>>) -> std::io::Result<()> {
    let mut bytes = Vec::new();
    let (head, body) = loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
            let length: usize = header(&head, "content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
            if bytes.len() >= end + 4 + length {
                break (head, bytes[end + 4..].to_vec());
            }
        }
        if socket.read_buf(&mut bytes).await? == 0 {
            return Ok(());
        }
    };
    let (answer, stalls) = match head.starts_with("get ") {
        true => (card(defect, &head), false),
        false => tasks.lock().unwrap().answer(defect, &head, &body),
    };
    socket.write_all(answer.as_bytes()).await?;
    if stalls {
        return socket.read_to_end(&mut Vec::new()).await.map(drop);
    }
    socket.shutdown().await
}

fn header<'a>(head: &'a str, wanted: &str) -> Option<&'a str> {
    let mut fields = head.lines().filter_map(|line| line.split_once(':'));
    fields.find(|(name, _)| *name == wanted).map(|(_, value)| value.trim())
}

fn http(status: u16, headers: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status} So\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n\r\n{body}")
}

fn card(defect: Defect, head: &str) -> String {
    if !head.contains("/.well-known/agent-card.json") {
        return http(404, "content-type: text/plain", "nothing here");
    }
    let host = header(head, "host").unwrap();
    let mut card = json!({
        "name": "peer", "description": "A peer", "version": "1",
        "supportedInterfaces": [
            {"url": format!("http://{host}/rpc"), "protocolBinding": "JSONRPC", "protocolVersion": "1.0"},
        ],
        "capabilities": {"streaming": true}, "defaultInputModes": [], "defaultOutputModes": [], "skills": [],
    });
    match defect {
        Defect::CardWithoutSkills => drop(card.as_object_mut().unwrap().remove("skills")),
        Defect::KeyDemandedAndNotChecked => {
            card["securitySchemes"] = json!({"key": {"httpAuthSecurityScheme": {"scheme": "Bearer"}}});
            card["securityRequirements"] = json!([{"schemes": {"key": {"list": []}}}]);
        }
        _ => {}
    }
    let caching = match defect {
        Defect::CardWithoutCaching => "",
        _ if head.contains("if-none-match: \"one\"") => return http(304, "etag: \"one\"", ""),
        _ => "\r\ncache-control: max-age=60\r\netag: \"one\"",
    };
    http(200, &format!("content-type: application/json{caching}"), &card.to_string())
}

impl Tasks {
    fn answer(&mut self, defect: Defect, head: &str, body: &[u8]) -> (String, bool) {
        if defect == Defect::HtmlForJson {
            return (http(200, "content-type: text/html", "<html>Welcome</html>"), false);
        }
        let Ok(request) = serde_json::from_slice::<Value>(body) else {
            return (error(defect, &Value::Null, -32700), false);
        };
        let id = &request["id"];
        let Some(method) = request["method"].as_str() else { return (error(defect, id, -32600), false) };
        match header(head, "a2a-version") {
            Some(version) if version.starts_with("1.0") || defect == Defect::VersionIgnored => {}
            None if method == "tasks/get" && defect != Defect::OldCallersRefused => {
                return (error(defect, id, -32001), false);
            }
            _ => return (error(defect, id, -32009), false),
        }
        let params = &request["params"];
        match method {
            "SendMessage" | "SendStreamingMessage" => self.send(defect, id, method, params),
            "SubscribeToTask" => self.subscribe(defect, id, params),
            _ => (self.plain(defect, id, method, params), false),
        }
    }

    fn plain(&mut self, defect: Defect, id: &Value, method: &str, params: &Value) -> String {
        let found = self.all.iter().position(|task| task["id"] == params["id"]);
        match (method, found) {
            ("GetTask" | "CancelTask", None) => error(defect, id, -32001),
            ("GetTask", Some(place)) => {
                let mut task = self.all[place].clone();
                if params["historyLength"] == 0 && defect != Defect::HistoryAlways {
                    task.as_object_mut().unwrap().remove("history");
                }
                result(id, &task)
            }
            ("CancelTask", Some(place)) => {
                if has_ended(&self.all[place]) && defect != Defect::EndedTaskIsCanceled {
                    return error(defect, id, -32002);
                }
                self.all[place]["status"] = json!({"state": "TASK_STATE_CANCELED", "timestamp": self.now()});
                result(id, &self.all[place])
            }
            ("ListTasks", _) => self.list(defect, id, params),
            (method, _) if method.contains("PushNotification") => match defect {
                Defect::WebhooksUndeclared => result(id, &json!({"configs": []})),
                _ => error(defect, id, -32003),
            },
            _ => error(defect, id, -32601),
        }
    }

    fn list(&self, defect: Defect, id: &Value, params: &Value) -> String {
        let size = params["pageSize"].as_u64().unwrap_or(50);
        if !(1..=100).contains(&size) {
            return error(defect, id, -32602);
        }
        let context = params["contextId"].as_str();
        let mut tasks: Vec<Value> = self.all.clone();
        tasks.retain(|task| context.is_none_or(|context| task["contextId"] == context));
        tasks.sort_by_key(|task| task["status"]["timestamp"].as_str().unwrap().to_owned());
        if defect != Defect::ListOldestFirst {
            tasks.reverse();
        }
        let total = tasks.len();
        let token = params["pageToken"].as_str().unwrap_or_default();
        let begin: usize = token.trim_start_matches("after-").parse().unwrap_or(0);
        let mut page: Vec<Value> = tasks.into_iter().skip(begin).take(size as usize).collect();
        if params["includeArtifacts"] != true && defect != Defect::ListWithArtifacts {
            page.iter_mut().for_each(|task| drop(task.as_object_mut().unwrap().remove("artifacts")));
        }
        let next = begin + page.len();
        let kind = if defect == Defect::ListByNumber { "" } else { "after-" };
        let mut list = json!({"tasks": page, "pageSize": size, "totalSize": total});
        if next < total {
            list["nextPageToken"] = json!(format!("{kind}{next}"));
        } else if defect != Defect::ListWithoutToken {
            list["nextPageToken"] = json!("");
        }
        result(id, &list)
    }

    fn send(&mut self, defect: Defect, id: &Value, method: &str, params: &Value) -> (String, bool) {
        let message = &params["message"];
        if message["parts"].as_array().is_none_or(Vec::is_empty) {
            return (error(defect, id, -32602), false);
        }
        if let Some(task) = message["taskId"].as_str() {
            let is_known = self.all.iter().any(|known| known["id"] == task);
            return (error(defect, id, if is_known { -32004 } else { -32001 }), false);
        }
        let is_left = defect == Defect::TaskLeftAtWork;
        let state = match params["configuration"]["returnImmediately"] == true || is_left {
            true => "TASK_STATE_WORKING",
            false => "TASK_STATE_COMPLETED",
        };
        let state = if defect == Defect::OldSpellings { "completed" } else { state };
        let number = self.all.len();
        let task = json!({
            "id": format!("t{number}"), "contextId": format!("c{number}"),
            "status": {"state": state, "timestamp": self.now()},
            "artifacts": [{"artifactId": "a", "parts": [{"text": "done"}]}], "history": [message],
        });
        self.all.push(task.clone());
        match method {
            _ if is_left => (error(defect, id, -32603), false),
            "SendMessage" => (result(id, &json!({"task": task})), false),
            _ => stream(defect, id, &task),
        }
    }

    fn subscribe(&self, defect: Defect, id: &Value, params: &Value) -> (String, bool) {
        let task = self.all.iter().find(|task| task["id"] == params["id"]);
        let Some(task) = task else { return (error(defect, id, -32001), false) };
        match has_ended(task) {
            false if matches!(defect, Defect::SubscribeLosesTheTask | Defect::TaskLeftAtWork) => {
                (error(defect, id, -32001), false)
            }
            true if defect != Defect::SubscribeToEnded => (error(defect, id, -32004), false),
            _ => (events(id, &[json!({"task": task})]), false),
        }
    }

    fn now(&mut self) -> String {
        self.clock += 1;
        format!("2026-01-01T00:{:02}:{:02}.000Z", self.clock / 60, self.clock % 60)
    }
}

fn has_ended(task: &Value) -> bool {
    !matches!(task["status"]["state"].as_str(), Some("TASK_STATE_WORKING"))
}

fn stream(defect: Defect, id: &Value, task: &Value) -> (String, bool) {
    let ids = json!({"taskId": task["id"], "contextId": task["contextId"]});
    let with = |member: &str, value: Value| {
        let mut update = ids.clone();
        update[member] = value;
        update
    };
    let mut begun = task.clone();
    begun["status"] = json!({"state": "TASK_STATE_WORKING"});
    let artifact = json!({"artifactUpdate": with("artifact", task["artifacts"][0].clone())});
    let end = json!({"statusUpdate": with("status", task["status"].clone())});
    let frames = match defect {
        Defect::StreamWithoutTask => vec![artifact, end],
        Defect::StreamGoesOnAfterTheEnd => vec![json!({"task": begun}), end, artifact],
        _ => vec![json!({"task": begun}), artifact, end],
    };
    (events(id, &frames), defect == Defect::StreamNeverCloses)
}

fn events(id: &Value, frames: &[Value]) -> String {
    let mut text = "HTTP/1.1 200 So\r\nconnection: close\r\ncontent-type: text/event-stream\r\n\r\n".to_owned();
    for frame in frames {
        text.push_str(&format!("data: {}\n\n", json!({"jsonrpc": "2.0", "id": id, "result": frame})));
    }
    text
}

fn result(id: &Value, result: &Value) -> String {
    http(200, "content-type: application/json", &json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string())
}

fn error(defect: Defect, id: &Value, code: i32) -> String {
    let info = json!({
        "@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "SOME_REASON", "domain": "a2a-protocol.org",
    });
    let mut error = json!({"code": code, "message": "No.\u{1b}[2J", "data": [info]});
    match defect {
        Defect::ErrorWithoutCode => drop(error.as_object_mut().unwrap().remove("code")),
        Defect::ErrorWithoutInfo => drop(error.as_object_mut().unwrap().remove("data")),
        _ => {}
    }
    http(200, "content-type: application/json", &json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string())
}
