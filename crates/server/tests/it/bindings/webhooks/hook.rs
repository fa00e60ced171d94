//! Requests about webhooks as each dialect takes them, from one description.

use serde_json::{Value, json};

use crate::bindings::client::{Ask, Reply};
use crate::bindings::dialects::{Operation, TestDialect};
use crate::bindings::world::World;

/// What to do with the webhooks of a task.
#[derive(Clone, Debug)]
pub(crate) enum Hook<'a> {
    /// As version 1.0 writes it.
    Set(&'a str, Value),
    Get(&'a str, Option<&'a str>),
    /// With the parameters of a page.
    List(&'a str, Value),
    Delete(&'a str, &'a str),
}

impl TestDialect {
    /// The request at an agent's address, `""` being the root.
    pub(crate) fn hook(self, world: &World, agent: &str, hook: Hook<'_>) -> Ask {
        let mount = if agent.is_empty() { "/a2a".to_owned() } else { format!("/a2a/{agent}") };
        if self.is_rpc() {
            let (method, params) = self.call(hook);
            let body = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
            return world.post(&mount, &body).version(if self.is_v1() { "1.0" } else { "" });
        }
        let prefix = if self.is_v1() { mount } else { format!("{mount}/v1") };
        let (method, path, body) = match hook {
            Hook::Set(task, config) => ("POST", format!("{task}/pushNotificationConfigs"), self.config(task, config)),
            Hook::Get(task, Some(id)) => ("GET", format!("{task}/pushNotificationConfigs/{id}"), Value::Null),
            Hook::Get(_, None) => panic!("REST has no path for it"),
            Hook::List(task, page) => {
                let pairs = page.as_object().unwrap().iter();
                let text = |value: &Value| value.to_string().replace('"', "");
                let query: Vec<String> = pairs.map(|(name, value)| format!("{name}={}", text(value))).collect();
                ("GET", format!("{task}/pushNotificationConfigs?{}", query.join("&")), Value::Null)
            }
            Hook::Delete(task, id) => ("DELETE", format!("{task}/pushNotificationConfigs/{id}"), Value::Null),
        };
        let ask = Ask::new(world.address, method, &format!("{prefix}/tasks/{path}"));
        let ask = ask.version(if self.is_v1() { "1.0" } else { "" });
        if body.is_null() { ask } else { ask.body(&body) }
    }

    fn call(self, hook: Hook<'_>) -> (&'static str, Value) {
        let name = |v1: &'static str, v03: &'static str| if self.is_v1() { v1 } else { v03 };
        let ids = |task: &str, id: Option<&str>| match (self.is_v1(), id) {
            (true, id) => json!({"taskId": task, "id": id}),
            (false, None) => json!({"id": task}),
            (false, Some(id)) => json!({"id": task, "pushNotificationConfigId": id}),
        };
        match hook {
            Hook::Set(task, config) => (
                name("CreateTaskPushNotificationConfig", "tasks/pushNotificationConfig/set"),
                self.config(task, config),
            ),
            Hook::Get(task, id) => {
                (name("GetTaskPushNotificationConfig", "tasks/pushNotificationConfig/get"), ids(task, id))
            }
            Hook::List(task, mut page) => {
                page[name("taskId", "id")] = task.into();
                (name("ListTaskPushNotificationConfigs", "tasks/pushNotificationConfig/list"), page)
            }
            Hook::Delete(task, id) => {
                (name("DeleteTaskPushNotificationConfig", "tasks/pushNotificationConfig/delete"), ids(task, Some(id)))
            }
        }
    }

    /// The body or the parameters that set a webhook.
    fn config(self, task: &str, mut config: Value) -> Value {
        match self {
            Self::RpcV1 => {
                config["taskId"] = task.into();
                config
            }
            Self::RestV1 => config,
            Self::RpcV03 => json!({"taskId": task, "pushNotificationConfig": v03(config)}),
            Self::RestV03 => {
                let id = config["id"].clone();
                let inner = json!({"pushNotificationConfig": v03(config)});
                json!({"parent": format!("tasks/{task}"), "configId": id, "config": inner})
            }
        }
    }

    /// The configuration of a message with a webhook, which waits for the end of the task.
    pub(crate) fn with_hook(self, config: Value) -> Value {
        let (member, config) = match self {
            Self::RpcV1 | Self::RestV1 => ("taskPushNotificationConfig", config),
            Self::RpcV03 => ("pushNotificationConfig", v03(config)),
            Self::RestV03 => ("pushNotification", v03(config)),
        };
        match self.is_v1() {
            true => json!({member: config}),
            false => json!({member: config, "blocking": true}),
        }
    }

    /// A webhook in an answer, as version 1.0 writes it.
    pub(crate) fn shown(self, shown: &Value) -> Value {
        let mut config = match self {
            Self::RpcV1 | Self::RestV1 => return shown.clone(),
            Self::RpcV03 | Self::RestV03 => shown["pushNotificationConfig"].clone(),
        };
        config["taskId"] = match self {
            Self::RpcV03 => shown["taskId"].clone(),
            _ => shown["name"].as_str().unwrap().split('/').nth(1).unwrap().into(),
        };
        if let Some(schemes) = config.pointer("/authentication/schemes").cloned() {
            let authentication = config["authentication"].as_object_mut().unwrap();
            authentication.remove("schemes");
            authentication.insert("scheme".to_owned(), schemes[0].clone());
        }
        config
    }

    /// The webhooks of a page, as version 1.0 writes them, and where the next begins.
    pub(crate) fn page(self, reply: &Reply) -> (Vec<Value>, String) {
        let result = self.result(reply);
        let (configs, token) = match self {
            Self::RpcV03 => (&result, ""),
            _ => (&result["configs"], result["nextPageToken"].as_str().unwrap()),
        };
        (configs.as_array().unwrap().iter().map(|config| self.shown(config)).collect(), token.to_owned())
    }
}

/// The inner object of version 0.3.
fn v03(mut config: Value) -> Value {
    if let Some(scheme) = config.pointer("/authentication/scheme").cloned() {
        let authentication = config["authentication"].as_object_mut().unwrap();
        authentication.remove("scheme");
        authentication.insert("schemes".to_owned(), json!([scheme]));
    }
    config
}

/// A task that works until it is canceled, so that nothing happens to its webhooks meanwhile.
pub(crate) async fn busy_task(world: &World, key: &str) -> String {
    let params = json!({"message": TestDialect::RestV1.message("hold")});
    let mut events = TestDialect::RestV1.ask(world, "worker", Operation::Stream(params)).key(key).events().await;
    let first = events.next().await.unwrap();
    assert_eq!(TestDialect::RestV1.story(&[events.next().await.unwrap()]), ["statusUpdate working"]);
    TestDialect::RestV1.event(&first).1["id"].as_str().unwrap().to_owned()
}
