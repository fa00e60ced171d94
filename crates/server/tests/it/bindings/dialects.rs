//! The dialects: JSON-RPC and REST, each in both versions. A test that goes through all of them is written once.

use serde_json::{Value, json};

use super::client::{Ask, Events, Frame, Reply};
use super::world::World;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TestDialect {
    RpcV1,
    RestV1,
    RpcV03,
    RestV03,
}

pub(crate) const ALL: [TestDialect; 4] =
    [TestDialect::RpcV1, TestDialect::RestV1, TestDialect::RpcV03, TestDialect::RestV03];

impl TestDialect {
    pub(crate) fn is_rpc(self) -> bool {
        matches!(self, Self::RpcV1 | Self::RpcV03)
    }

    pub(crate) fn is_v1(self) -> bool {
        matches!(self, Self::RpcV1 | Self::RestV1)
    }

    /// A state's name.
    pub(crate) fn state(self, name: &str) -> String {
        match self {
            Self::RpcV03 => name.to_owned(),
            Self::RestV03 if name == "canceled" => "TASK_STATE_CANCELLED".to_owned(),
            _ => format!("TASK_STATE_{}", name.to_uppercase().replace('-', "_")),
        }
    }

    /// A message as this dialect takes it.
    pub(crate) fn message(self, text: &str) -> Value {
        match self {
            Self::RpcV1 | Self::RestV1 => json!({"messageId": "m1", "role": "ROLE_USER", "parts": [{"text": text}]}),
            Self::RpcV03 => {
                let parts = json!([{"kind": "text", "text": text}]);
                json!({"kind": "message", "messageId": "m1", "role": "user", "parts": parts})
            }
            Self::RestV03 => json!({"messageId": "m1", "role": "ROLE_USER", "content": [{"text": text}]}),
        }
    }

    /// A message for a task.
    pub(crate) fn answer(self, text: &str, task: &str) -> Value {
        let mut message = self.message(text);
        message["taskId"] = task.into();
        message
    }

    /// The request for an operation at an agent's address, `""` being the root.
    pub(crate) fn ask(self, world: &World, agent: &str, operation: Operation<'_>) -> Ask {
        let mount = if agent.is_empty() { "/a2a".to_owned() } else { format!("/a2a/{agent}") };
        if self.is_rpc() {
            let (method, params) = operation.rpc(self.is_v1());
            let body = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
            return world.post(&mount, &body).version(if self.is_v1() { "1.0" } else { "" });
        }
        let prefix = if self.is_v1() { "" } else { "/v1" };
        let version = if self.is_v1() { "1.0" } else { "" };
        let (method, path, body) = operation.rest(self.is_v1());
        let ask = Ask::new(world.address, method, &format!("{mount}{prefix}{path}")).version(version);
        if body.is_null() { ask } else { ask.body(&body) }
    }

    pub(crate) fn send(self, world: &World, text: &str) -> Ask {
        self.ask(world, "", Operation::Send(json!({"message": self.message(text)})))
    }

    pub(crate) async fn stream(self, world: &World, text: &str) -> Events {
        self.ask(world, "", Operation::Stream(json!({"message": self.message(text)}))).events().await
    }

    /// The result of a reply that must be a success.
    pub(crate) fn result(self, reply: &Reply) -> Value {
        let json = reply.json();
        assert_eq!(reply.status, 200, "{self:?}: {json}");
        assert_eq!(reply.header("a2a-version"), if self.is_v1() { "1.0" } else { "0.3" });
        let media_type = if self == Self::RestV1 { "application/a2a+json" } else { "application/json" };
        assert_eq!(reply.header("content-type"), media_type);
        if !self.is_rpc() {
            return json;
        }
        assert_eq!((&json["jsonrpc"], &json["id"]), (&json!("2.0"), &json!(7)), "{json}");
        assert!(json.get("error").is_none(), "{json}");
        json["result"].clone()
    }

    /// The task of a reply to a message.
    pub(crate) fn sent_task(self, reply: &Reply) -> Value {
        self.unwrap(self.result(reply), "task")
    }

    /// What is in a stream frame: its name in v1.0 and the object.
    pub(crate) fn event(self, frame: &Frame) -> (String, Value) {
        assert_eq!(frame.event, None, "{frame:?}");
        let mut value = frame.data.clone();
        if self.is_rpc() {
            assert_eq!(value["id"], json!(7), "{value}");
            value = value["result"].clone();
        }
        if self == Self::RpcV03 {
            let kind = value["kind"].as_str().unwrap().to_owned();
            let name = match kind.as_str() {
                "status-update" => "statusUpdate",
                "artifact-update" => "artifactUpdate",
                other => other,
            };
            return (name.to_owned(), value);
        }
        let members = value.as_object().unwrap();
        assert_eq!(members.len(), 1, "{value}");
        let (name, inner) = members.iter().next().unwrap();
        (name.clone(), inner.clone())
    }

    /// The names and states of frames: what a stream told, in short.
    pub(crate) fn story(self, frames: &[Frame]) -> Vec<String> {
        let told = frames.iter().map(|frame| {
            let (name, value) = self.event(frame);
            match value["status"]["state"].as_str() {
                Some(state) => format!("{name} {}", short(state)),
                None => name,
            }
        });
        told.collect()
    }

    /// What an error reply says: HTTP status, JSON-RPC code, reason.
    pub(crate) fn error(self, reply: &Reply) -> (u16, i64, String) {
        let json = reply.json();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        match self {
            Self::RpcV1 => {
                let error = &json["error"];
                assert_eq!(error["data"][0]["domain"], "a2a-protocol.org", "{json}");
                (reply.status, error["code"].as_i64().unwrap(), text(&error["data"][0]["reason"]))
            }
            Self::RpcV03 => (reply.status, json["error"]["code"].as_i64().unwrap(), String::new()),
            Self::RestV1 => {
                assert_eq!(json["error"]["code"], json!(reply.status), "{json}");
                assert_eq!(reply.header("content-type"), "application/a2a+json");
                (reply.status, 0, text(&json["error"]["details"][0]["reason"]))
            }
            Self::RestV03 => (reply.status, json["code"].as_i64().unwrap(), String::new()),
        }
    }

    fn unwrap(self, value: Value, member: &str) -> Value {
        if self == Self::RpcV03 { value } else { value[member].clone() }
    }
}

/// `TASK_STATE_INPUT_REQUIRED` and `input-required` are the same to a story.
fn short(state: &str) -> String {
    let bare = state.strip_prefix("TASK_STATE_").unwrap_or(state);
    bare.to_lowercase().replace('_', "-").replace("cancelled", "canceled")
}

/// What to ask for.
#[derive(Clone, Debug)]
pub(crate) enum Operation<'a> {
    Send(Value),
    Stream(Value),
    Get(&'a str, Option<u32>),
    Cancel(&'a str),
    Subscribe(&'a str),
    List,
    CreatePush(&'a str),
    GetPush(&'a str),
    ListPush(&'a str),
    DeletePush(&'a str),
    ExtendedCard,
}

impl Operation<'_> {
    fn rpc(self, is_v1: bool) -> (&'static str, Value) {
        let name = |v1: &'static str, v03: &'static str| if is_v1 { v1 } else { v03 };
        let config = |task: &str| match is_v1 {
            true => json!({"taskId": task, "id": "p1"}),
            false => json!({"id": task, "pushNotificationConfigId": "p1"}),
        };
        match self {
            Self::Send(params) => (name("SendMessage", "message/send"), params),
            Self::Stream(params) => (name("SendStreamingMessage", "message/stream"), params),
            Self::Get(id, None) => (name("GetTask", "tasks/get"), json!({"id": id})),
            Self::Get(id, Some(length)) => (name("GetTask", "tasks/get"), json!({"id": id, "historyLength": length})),
            Self::Cancel(id) => (name("CancelTask", "tasks/cancel"), json!({"id": id})),
            Self::Subscribe(id) => (name("SubscribeToTask", "tasks/resubscribe"), json!({"id": id})),
            Self::List => (name("ListTasks", "tasks/list"), json!({})),
            Self::CreatePush(task) => {
                let method = name("CreateTaskPushNotificationConfig", "tasks/pushNotificationConfig/set");
                let url = "https://hook.test/";
                match is_v1 {
                    true => (method, json!({"taskId": task, "url": url})),
                    false => (method, json!({"taskId": task, "pushNotificationConfig": {"url": url}})),
                }
            }
            Self::GetPush(task) => {
                (name("GetTaskPushNotificationConfig", "tasks/pushNotificationConfig/get"), config(task))
            }
            Self::ListPush(task) => {
                let method = name("ListTaskPushNotificationConfigs", "tasks/pushNotificationConfig/list");
                (method, json!({name("taskId", "id"): task}))
            }
            Self::DeletePush(task) => {
                (name("DeleteTaskPushNotificationConfig", "tasks/pushNotificationConfig/delete"), config(task))
            }
            Self::ExtendedCard => (name("GetExtendedAgentCard", "agent/getAuthenticatedExtendedCard"), Value::Null),
        }
    }

    fn rest(self, is_v1: bool) -> (&'static str, String, Value) {
        let none = Value::Null;
        match self {
            Self::Send(body) => ("POST", "/message:send".to_owned(), body),
            Self::Stream(body) => ("POST", "/message:stream".to_owned(), body),
            Self::Get(id, None) => ("GET", format!("/tasks/{id}"), none),
            Self::Get(id, Some(length)) => ("GET", format!("/tasks/{id}?historyLength={length}"), none),
            Self::Cancel(id) => ("POST", format!("/tasks/{id}:cancel"), none),
            Self::Subscribe(id) => (if is_v1 { "POST" } else { "GET" }, format!("/tasks/{id}:subscribe"), none),
            Self::List => ("GET", "/tasks".to_owned(), none),
            Self::CreatePush(task) => {
                let body = json!({"url": "https://hook.test/", "config": {"pushNotificationConfig": {"url": "https://hook.test/"}}});
                ("POST", format!("/tasks/{task}/pushNotificationConfigs"), body)
            }
            Self::GetPush(task) => ("GET", format!("/tasks/{task}/pushNotificationConfigs/p1"), none),
            Self::ListPush(task) => ("GET", format!("/tasks/{task}/pushNotificationConfigs"), none),
            Self::DeletePush(task) => ("DELETE", format!("/tasks/{task}/pushNotificationConfigs/p1"), none),
            Self::ExtendedCard => ("GET", if is_v1 { "/extendedAgentCard" } else { "/card" }.to_owned(), none),
        }
    }
}
