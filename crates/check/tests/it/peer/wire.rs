//! Requests and answers of the scripted agent, over JSON-RPC at `/rpc` and over REST at `/rest`.

use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

use super::{Defect, EXTENSION, TENANT};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Binding {
    Rpc,
    Rest,
    None,
}

/// What was asked.
pub(super) struct Asked {
    pub(super) path: String,
    pub(super) head: String,
    pub(super) binding: Binding,
    pub(super) method: String,
    pub(super) params: Value,
    pub(super) id: Value,
    /// Why it is no request, as an error's code.
    pub(super) problem: Option<i32>,
}

impl Asked {
    /// Reads a request, if one comes.
    pub(super) async fn read(socket: &mut TcpStream) -> std::io::Result<Option<Self>> {
        let mut bytes = Vec::new();
        loop {
            if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
                let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
                let length = field(&head, "content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
                if bytes.len() >= end + 4 + length {
                    return Ok(Some(Self::of(head, &bytes[end + 4..])));
                }
            }
            if socket.read_buf(&mut bytes).await? == 0 {
                return Ok(None);
            }
        }
    }

    fn of(head: String, body: &[u8]) -> Self {
        let mut words = head.split(' ');
        let (verb, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let (path, verb, query) = (path.to_owned(), verb.to_owned(), query.to_owned());
        let binding = match () {
            () if path == "/rpc" => Binding::Rpc,
            () if path.starts_with("/rest/") => Binding::Rest,
            () => Binding::None,
        };
        let body = if body.is_empty() { b"{}" } else { body };
        let json = serde_json::from_slice::<Value>(body);
        let mut asked =
            Self { path, head, binding, method: String::new(), params: json!({}), id: Value::Null, problem: None };
        match (json, binding) {
            (Err(_), _) => asked.problem = Some(-32700),
            (Ok(json), Binding::Rest) => asked.read_rest(&verb, &query, json),
            (Ok(json), _) => {
                asked.id = json["id"].clone();
                asked.params = json["params"].clone();
                match json["method"].as_str() {
                    Some(method) => asked.method = method.to_owned(),
                    None => asked.problem = Some(-32600),
                }
            }
        }
        asked
    }

    fn read_rest(&mut self, verb: &str, query: &str, body: Value) {
        self.params = body;
        for (name, value) in query.split('&').filter_map(|pair| pair.split_once('=')) {
            let value = value.replace("%3A", ":");
            self.params[name] = serde_json::from_str(&value).unwrap_or_else(|_| json!(value));
        }
        let mut parts: Vec<&str> = self.path.split('/').skip(2).collect();
        if parts.first() == Some(&TENANT) {
            parts.remove(0);
            self.params["tenant"] = json!(TENANT);
        }
        let (method, id, config) = match (verb, parts.as_slice()) {
            ("POST", ["message:send"]) => ("SendMessage", None, None),
            ("POST", ["message:stream"]) => ("SendStreamingMessage", None, None),
            ("GET", ["tasks"]) => ("ListTasks", None, None),
            ("GET", ["extendedAgentCard"]) => ("GetExtendedAgentCard", None, None),
            ("POST", ["tasks", last]) if last.ends_with(":cancel") => {
                ("CancelTask", last.strip_suffix(":cancel"), None)
            }
            ("POST", ["tasks", last]) => ("SubscribeToTask", last.strip_suffix(":subscribe"), None),
            ("GET", ["tasks", id]) => ("GetTask", Some(*id), None),
            ("POST", ["tasks", id, _]) => ("CreateTaskPushNotificationConfig", Some(*id), None),
            ("GET", ["tasks", id, _]) => ("ListTaskPushNotificationConfigs", Some(*id), None),
            ("GET", ["tasks", id, _, config]) => ("GetTaskPushNotificationConfig", Some(*id), Some(*config)),
            ("DELETE", ["tasks", id, _, config]) => ("DeleteTaskPushNotificationConfig", Some(*id), Some(*config)),
            _ => ("", None, None),
        };
        self.method = method.to_owned();
        if let Some(id) = id {
            self.params[if method.contains("PushNotification") { "taskId" } else { "id" }] = json!(id);
        }
        if let Some(config) = config {
            self.params["id"] = json!(config);
        }
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        field(&self.head, name)
    }

    /// Who asks.
    pub(super) fn owner(&self) -> String {
        self.header("authorization").unwrap_or_default().to_owned()
    }

    pub(super) fn answer(&self, defect: Defect, answer: Result<Value, i32>) -> String {
        let result = match answer {
            Ok(result) => result,
            Err(code) => return self.error(defect, code),
        };
        let media_type = if defect == Defect::AnswersAsText { "text/plain" } else { "application/json" };
        let mut headers = format!("content-type: {media_type}");
        if defect == Defect::WithExtension {
            headers.push_str(&format!("\r\na2a-extensions: {EXTENSION}"));
        }
        let mut result = self.enveloped(&result);
        if defect == Defect::AnswersWithOtherId {
            result["id"] = json!(99);
        }
        if defect == Defect::WebhookDeletedWithoutResult && self.method == "DeleteTaskPushNotificationConfig" {
            drop(result.as_object_mut().unwrap().remove("result"));
        }
        let mut text = result.to_string();
        if defect == Defect::Reflects {
            text = text.replace("TASK_STATE_COMPLETED", &self.secrets());
        }
        http(200, &headers, &text)
    }

    /// What no report should repeat: the key, and the address with whatever stands in it.
    pub(super) fn secrets(&self) -> String {
        let target = self.head.split(' ').nth(1).unwrap_or_default();
        format!("{}{}{target}", self.owner(), self.header("x-api-key").unwrap_or_default())
    }

    pub(super) fn enveloped(&self, result: &Value) -> Value {
        match self.binding {
            Binding::Rpc => json!({"jsonrpc": "2.0", "id": self.id, "result": result}),
            _ => result.clone(),
        }
    }

    pub(super) fn error(&self, defect: Defect, code: i32) -> String {
        let (reason, status, name) = match code {
            -32001 => ("TASK_NOT_FOUND", 404, "NOT_FOUND"),
            -32002 => ("TASK_NOT_CANCELABLE", 400, "FAILED_PRECONDITION"),
            -32003 => ("PUSH_NOTIFICATION_NOT_SUPPORTED", 400, "FAILED_PRECONDITION"),
            -32004 => ("UNSUPPORTED_OPERATION", 400, "FAILED_PRECONDITION"),
            -32008 => ("EXTENSION_SUPPORT_REQUIRED", 400, "FAILED_PRECONDITION"),
            -32009 => ("VERSION_NOT_SUPPORTED", 400, "FAILED_PRECONDITION"),
            _ => ("INVALID_PARAMS", 400, "INVALID_ARGUMENT"),
        };
        let info = json!({
            "@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason, "domain": "a2a-protocol.org",
        });
        let media_type = if defect == Defect::ErrorsAsText { "text/plain" } else { "application/json" };
        let headers = format!("content-type: {media_type}");
        let details = if defect == Defect::RestErrorWithoutInfo { json!([]) } else { json!([info]) };
        if self.binding == Binding::Rest {
            let status = if defect == Defect::ErrorsWithRestStatus && code == -32002 { 422 } else { status };
            let error = json!({"code": status, "status": name, "message": "No.", "details": details});
            return http(status, &headers, &json!({"error": error}).to_string());
        }
        let mut error = json!({"code": code, "message": "No.\u{1b}[2J", "data": [info]});
        match defect {
            Defect::ErrorWithoutCode => drop(error.as_object_mut().unwrap().remove("code")),
            Defect::ErrorWithoutInfo => drop(error.as_object_mut().unwrap().remove("data")),
            Defect::ErrorWithPlainData => error["data"].as_array_mut().unwrap().push(json!({"taskId": "x"})),
            _ => {}
        }
        let status = if defect == Defect::ErrorsWithRpcStatus { 400 } else { 200 };
        http(status, &headers, &json!({"jsonrpc": "2.0", "id": self.id, "error": error}).to_string())
    }
}

fn field<'a>(head: &'a str, wanted: &str) -> Option<&'a str> {
    let mut fields = head.lines().filter_map(|line| line.split_once(':'));
    fields.find(|(name, _)| name.eq_ignore_ascii_case(wanted)).map(|(_, value)| value.trim())
}

pub(super) fn http(status: u16, headers: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status} So\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n\r\n{body}")
}
