//! Which operation a method and path stand for: at every mount, with ids in any encoding, and nowhere else.

use serde_json::json;

use super::client::Ask;
use super::world::{Plan, World};

/// Method, path below a mount, operation, and the ids that the error of a missing task or webhook names.
const ROUTES: [(&str, &str, &str, &str); 16] = [
    ("POST", "message:send", "SendMessage", "message"),
    ("POST", "message%3Asend", "SendMessage", "message"),
    ("POST", "message:stream", "SendStreamingMessage", "message"),
    ("GET", "tasks", "ListTasks", ""),
    ("GET", "tasks/t1", "GetTask", "t1"),
    ("GET", "tasks/a%2Fb:c", "GetTask", "a/b:c"),
    ("GET", "tasks/100%", "GetTask", "100%"),
    ("GET", "tasks/t1%3Acancel", "GetTask", "t1:cancel"),
    ("POST", "tasks/t1:cancel", "CancelTask", "t1"),
    ("POST", "tasks/a:b:cancel", "CancelTask", "a:b"),
    ("GET", "tasks/t1:subscribe", "SubscribeToTask", "t1"),
    ("POST", "tasks/t1:subscribe", "SubscribeToTask", "t1"),
    ("GET", "tasks/t1/pushNotificationConfigs", "ListTaskPushNotificationConfigs", "t1"),
    ("GET", "tasks/t1/pushNotificationConfigs/p%C3%A9", "GetTaskPushNotificationConfig", "t1"),
    ("DELETE", "tasks/t1/pushNotificationConfigs/p", "DeleteTaskPushNotificationConfig", "t1"),
    ("GET", "extendedAgentCard", "GetExtendedAgentCard", "no extended card"),
];

const ROOT_MOUNTS: [&str; 4] = ["", "/v1", "/a2a", "/a2a/v1"];
const AGENT_MOUNTS: [&str; 4] = ["/a2a/{agent}", "/a2a/{agent}/v1", "/{agent}", "/{agent}/v1"];

async fn answer(world: &World, method: &'static str, path: &str) -> (u16, String) {
    let ask = Ask::new(world.address, method, path);
    let reply = if method == "POST" { ask.body(&json!({})) } else { ask }.reply().await;
    (reply.status, String::from_utf8_lossy(&reply.body).into_owned())
}

#[tokio::test]
async fn rest_is_the_same_at_every_mount() {
    let recorder = metrics_exporter_prometheus::PrometheusBuilder::new().build_recorder();
    // Tests run on one thread, the server's tasks too.
    let _counts = metrics::set_default_local_recorder(&recorder);
    let world = Plan::default().and_webhooks().start().await;
    for mount in ROOT_MOUNTS.into_iter().chain(AGENT_MOUNTS) {
        for (method, below, _, named) in ROUTES {
            let path = format!("{mount}/{below}").replace("{agent}", "worker");
            let (status, body) = answer(&world, method, &path).await;
            assert!(status != 405 && body.contains(named), "{method} {path}: {status} {body}");
            let is_old = mount.ends_with("/v1") && status != 200;
            assert_eq!(body.starts_with(r#"{"code":"#), is_old, "the version of {path}: {body}");
        }
    }
    // The path alone names the agent: where it does not exist, no operation does.
    for mount in AGENT_MOUNTS {
        for (method, below, _, _) in ROUTES.into_iter().filter(|(_, below, ..)| !below.starts_with("message")) {
            let path = format!("{mount}/{below}").replace("{agent}", "nope");
            let (status, body) = answer(&world, method, &path).await;
            assert!(status == 404 && body.contains(r#"\"nope\""#), "{method} {path}: {status} {body}");
        }
    }
    let counted = recorder.handle().render();
    for (_, _, operation, _) in ROUTES {
        let label = format!("method=\"{operation}\"");
        let lines = counted.lines().filter(|line| line.starts_with("a2a_requests_total") && line.contains(&label));
        let count: usize = lines.map(|line| line.rsplit(' ').next().unwrap().parse::<usize>().unwrap()).sum();
        let rows = ROUTES.iter().filter(|row| row.2 == operation);
        let expected: usize = rows.map(|row| if row.1.starts_with("message") { 8 } else { 12 }).sum();
        assert_eq!(count, expected, "{operation} in {counted}");
    }
    assert!(answer(&world, "GET", "/v1/card").await.1.contains("no extended card"));
}

#[tokio::test]
async fn json_rpc_has_its_aliases_and_other_methods_and_paths_are_refused() {
    let world = World::start().await;
    for path in ["/", "/a2a", "/a2a/", "/a2a/jsonrpc", "/a2a/worker", "/a2a/worker/", "/a2a/worker/jsonrpc"] {
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "ListTasks"});
        assert_eq!(world.post(path, &call).reply().await.json()["result"]["totalSize"], 0, "{path}");
    }
    for (method, path, allow) in [
        ("GET", "/a2a", "POST"),
        ("POST", "/.well-known/agent.json", "GET, HEAD"),
        ("POST", "/openapi.json", "GET, HEAD"),
        ("GET", "/a2a/worker", "POST"),
        ("POST", "/tasks", "GET"),
        ("GET", "/message:send", "POST"),
        ("PUT", "/tasks/t:subscribe", "GET, POST"),
        ("PUT", "/tasks/t/pushNotificationConfigs/p", "GET, DELETE"),
    ] {
        let reply = Ask::new(world.address, method, path).reply().await;
        assert_eq!((reply.status, reply.header("allow")), (405, allow), "{method} {path}");
    }
    for path in [
        "/card",
        "/api/tasks",
        "/console/tasks",
        "/a2a/agents/tasks",
        "/tasks/t1/else",
        "/Echo/tasks",
        "/x/y/z",
        "/tasks/%ff",
        "/.well-known/other.json",
    ] {
        assert_eq!(answer(&world, "GET", path).await.0, 404, "{path}");
    }
    assert_eq!(answer(&world, "POST", "/worker").await.0, 404, "JSON-RPC of an agent is below /a2a only");
}
