//! What operators see of webhooks and do with them.

use std::sync::Arc;

use serde_json::{Value, json};
use switchboard_a2a::TaskId;
use switchboard_server::RenderMetrics;

use crate::bindings::client::{Ask, Reply};
use crate::bindings::dialects::{Operation, TestDialect};
use crate::bindings::webhooks::hook::{Hook, busy_task};
use crate::bindings::webhooks::receiver::Receiver;
use crate::bindings::world::{Plan, World};

const DIALECT: TestDialect = TestDialect::RestV1;

async fn get(world: &World, path: &str) -> Value {
    let reply = world.get(&format!("/api/webhooks{path}")).key("operator").reply().await;
    assert_eq!(reply.status, 200, "{path}: {}", reply.json());
    assert_eq!(reply.header("content-type"), "application/json");
    reply.json()
}

async fn post(world: &World, path: &str) -> Reply {
    Ask::new(world.address, "POST", &format!("/api/webhooks{path}")).key("operator").reply().await
}

async fn set(world: &World, task: &str, id: &str, url: &str) {
    let hook = Hook::Set(task, json!({"id": id, "url": url, "token": "opaque"}));
    DIALECT.result(&DIALECT.hook(world, "", hook).key("ann").reply().await);
}

/// An ended task whose receiver has refused to hear of its end.
async fn refused(world: &World, receiver: &mut Receiver) -> (String, Value) {
    receiver.answer_with(404);
    let params = json!({"message": DIALECT.message("hello")});
    let sent = world.post("/a2a/message:send", &params).version("1.0").key("ann").reply().await;
    let task = DIALECT.sent_task(&sent)["id"].as_str().unwrap().to_owned();
    set(world, &task, "p1", &receiver.url("/secret/path?key=1")).await;
    receiver.next().await;
    // The attempt is over for the receiver before it is for the server.
    let letter = loop {
        let letters = get(world, "/dead-letters?pageSize=100").await;
        let letters = letters["deadLetters"].as_array().unwrap().clone();
        if let Some(letter) = letters.into_iter().find(|letter| letter["taskId"] == task.as_str()) {
            break letter;
        }
        tokio::task::yield_now().await;
    };
    (task, letter)
}

#[tokio::test]
async fn webhooks_are_listed_by_page_task_and_state() {
    let world = Plan::with_keys().0.and_webhooks().start().await;
    let (task, other) = (busy_task(&world, "ann").await, busy_task(&world, "ann").await);
    for number in 0..3 {
        set(&world, &task, &format!("p{number}"), "https://hook.test/secret/path?key=1").await;
    }
    set(&world, &other, "p9", "https://hook.test:8443/").await;
    let all = get(&world, "").await;
    let numbers: Vec<i64> =
        all["webhooks"].as_array().unwrap().iter().map(|webhook| webhook["webhook"].as_i64().unwrap()).collect();
    assert_eq!((numbers.len(), &all["next"]), (4, &Value::Null), "{all}");
    let first = &all["webhooks"][0];
    assert_eq!((&first["taskId"], &first["id"], &first["caller"]), (&json!(task), &json!("p0"), &json!("ann")));
    assert_eq!(
        (&first["agent"], &first["version"], &first["state"]),
        (&json!("worker"), &json!("1.0"), &json!("active"))
    );
    let text = all.to_string();
    assert!(!text.contains("opaque") && !text.contains("path") && !text.contains("key="), "{text}");
    assert!(text.contains("hook.test:8443"), "{text}");
    let page = get(&world, "?pageSize=3").await;
    assert_eq!((page["webhooks"].as_array().unwrap().len(), &page["next"]), (3, &json!(numbers[2])));
    let rest = get(&world, &format!("?pageSize=3&after={}", page["next"])).await;
    assert_eq!((&rest["webhooks"][0]["webhook"], &rest["next"]), (&json!(numbers[3]), &Value::Null));
    for (query, count) in [
        (format!("?task={task}"), 3),
        (format!("?task={other}&state=active"), 1),
        (format!("?taskId={task}"), 3),
        (format!("?taskId={task}&task={task}"), 3),
        ("?taskId=none".to_owned(), 0),
        ("?state=paused".to_owned(), 0),
        ("?task=none".to_owned(), 0),
        ("?state=&task=".to_owned(), 4),
    ] {
        assert_eq!(get(&world, &query).await["webhooks"].as_array().unwrap().len(), count, "{query}");
    }
    let shown = get(&world, &format!("/{}", numbers[3])).await;
    assert_eq!((&shown["webhook"]["id"], &shown["deliveries"]), (&json!("p9"), &json!([])), "{shown}");
}

#[tokio::test]
async fn an_operator_of_some_agents_has_the_webhooks_of_their_tasks_only() {
    let world = Plan::with_keys().0.and_webhooks().start().await;
    let mut receiver = Receiver::start().await;
    let (_, letter) = refused(&world, &mut receiver).await;
    let worker = letter["webhook"].as_i64().unwrap();
    let params = json!({"message": DIALECT.message("ask")});
    let asked = DIALECT.sent_task(&DIALECT.ask(&world, "either", Operation::Send(params)).key("ann").reply().await);
    set(&world, asked["id"].as_str().unwrap(), "p2", "https://hook.test/").await;
    let limited = async |method: &'static str, path: &str| {
        let reply = Ask::new(world.address, method, &format!("/api/webhooks{path}")).key("limited").reply().await;
        (reply.status, reply.json())
    };
    assert_eq!(get(&world, "").await["webhooks"].as_array().unwrap().len(), 2);
    // A page of one: the other agent's webhook, which is the first, takes no room on it.
    let (status, page) = limited("GET", "?pageSize=1").await;
    assert_eq!((status, &page["webhooks"][0]["id"], &page["next"]), (200, &json!("p2"), &Value::Null), "{page}");
    assert_eq!(limited("GET", "/dead-letters").await.1, json!({"deadLetters": [], "next": null}));
    assert_eq!(limited("POST", "/dead-letters:retry").await.1, json!({"retried": 0}));
    for (method, path) in [
        ("GET", format!("/{worker}")),
        ("POST", format!("/{worker}:pause")),
        ("POST", format!("/{worker}:resume")),
        ("POST", format!("/deliveries/{}:retry", letter["delivery"])),
    ] {
        assert_eq!(limited(method, &path).await.0, 404, "{path}");
    }
    let own = page["webhooks"][0]["webhook"].as_i64().unwrap();
    assert_eq!(limited("POST", &format!("/{own}:pause")).await.1["webhook"]["state"], "paused");
    let rotated = Ask::new(world.address, "POST", "/api/webhooks/secret:rotate").key("admin").reply().await;
    assert_eq!(rotated.status, 200, "{}", rotated.json());
}

#[tokio::test]
async fn a_webhook_is_paused_and_goes_on() {
    let world = Plan::with_keys().0.and_webhooks().start().await;
    let mut receiver = Receiver::start().await;
    let task = busy_task(&world, "ann").await;
    set(&world, &task, "p1", &receiver.url("/")).await;
    let number = get(&world, "").await["webhooks"][0]["webhook"].as_i64().unwrap();
    let paused = post(&world, &format!("/{number}:pause")).await;
    assert_eq!((paused.status, &paused.json()["webhook"]["state"]), (200, &json!("paused")));
    let again = post(&world, &format!("/{number}:pause")).await;
    let message = again.json()["error"]["message"].as_str().unwrap().to_owned();
    assert_eq!((again.status, &again.json()["error"]["status"]), (409, &json!("FAILED_PRECONDITION")), "{message}");
    assert_eq!(message, format!("webhook {number} is paused, only an active one can be paused"));
    let cancel = Ask::new(world.address, "POST", &format!("/a2a/tasks/{task}:cancel")).version("1.0").key("ann");
    assert_eq!(cancel.reply().await.status, 200);
    assert!(get(&world, &format!("/{number}")).await["webhook"]["lags"].as_bool().unwrap());
    assert!(receiver.is_quiet(), "it is held back");
    let resumed = post(&world, &format!("/{number}:resume")).await;
    assert_eq!(resumed.status, 200, "{}", resumed.json());
    loop {
        let told = receiver.next().await.json();
        if told["statusUpdate"]["status"]["state"] == "TASK_STATE_CANCELED" {
            break;
        }
    }
    assert_eq!(post(&world, &format!("/{number}:resume")).await.status, 409);
    for path in ["/4711:pause", "/4711:resume", "/deliveries/4711:retry"] {
        let missing = post(&world, path).await;
        assert_eq!(missing.status, 404, "{path}");
        assert!(missing.json()["error"]["message"].as_str().unwrap().contains("4711"), "{}", missing.json());
    }
    let missing = world.get("/api/webhooks/4711").key("operator").reply().await;
    assert_eq!((missing.status, &missing.json()["error"]["message"]), (404, &json!("there is no webhook 4711")));
}

#[tokio::test]
async fn what_was_given_up_is_sent_once_more() {
    let world = Plan::with_keys().0.and_webhooks().start().await;
    let mut receiver = Receiver::start().await;
    let (task, letter) = refused(&world, &mut receiver).await;
    assert_eq!((&letter["state"], &letter["status"], &letter["attempts"]), (&json!("dead"), &json!(404), &json!(1)));
    let text = letter.to_string();
    assert!(!text.contains("secret") && !text.contains("opaque"), "{text}");
    receiver.answer_with(200);
    let delivery = letter["delivery"].as_i64().unwrap();
    let retried = post(&world, &format!("/deliveries/{delivery}:retry")).await;
    assert_eq!((retried.status, retried.json()), (200, json!({"delivery": delivery})));
    let told = receiver.next().await;
    assert!(told.json().to_string().contains(&task), "{told:?}");

    let (task, _) = refused(&world, &mut receiver).await;
    let (other, _) = refused(&world, &mut receiver).await;
    receiver.answer_with(200);
    let none = post(&world, "/dead-letters:retry?task=none").await;
    assert_eq!((none.status, none.json()), (200, json!({"retried": 0})));
    for (query, words) in [
        (format!("taskid={task}"), "there is no parameter \"taskid\" here, only task, taskId"),
        (format!("task={task}&force"), "there is no parameter \"force\" here"),
        (format!("task={task}&taskId=none"), "taskId is \"none\" and must be the same as task"),
        (format!("task={task}&task=none"), "task is there more than once"),
        ("task=".to_owned(), "task is \"\" and must be the id of a task"),
        ("taskId=".to_owned(), "taskId is \"\" and must be the id of a task"),
    ] {
        let refused = post(&world, &format!("/dead-letters:retry?{query}")).await;
        let message = refused.json()["error"]["message"].as_str().unwrap().to_owned();
        assert!(refused.status == 400 && message.starts_with(words), "{query}: {message}");
    }
    assert!(receiver.is_quiet(), "what was not understood sends nothing");
    let one = post(&world, &format!("/dead-letters:retry?taskId={task}")).await;
    assert_eq!((one.status, one.json()), (200, json!({"retried": 1})));
    assert!(receiver.next().await.json().to_string().contains(&task));
    let rest = post(&world, "/dead-letters:retry").await.json()["retried"].as_u64().unwrap();
    assert!(rest >= 1, "{rest}");
    loop {
        if receiver.next().await.json().to_string().contains(&other) {
            break;
        }
    }
}

#[tokio::test]
async fn dead_letters_come_in_pages() {
    let world = Plan::with_keys().0.and_webhooks().start().await;
    let mut receiver = Receiver::start().await;
    let mut deliveries = Vec::new();
    for _ in 0..3 {
        deliveries.push(refused(&world, &mut receiver).await.1["delivery"].clone());
    }
    let page = get(&world, "/dead-letters?pageSize=2").await;
    assert_eq!((&page["deadLetters"][1]["delivery"], &page["next"]), (&deliveries[1], &deliveries[1]));
    let rest = get(&world, &format!("/dead-letters?pageSize=2&after={}", page["next"])).await;
    assert_eq!(rest["deadLetters"].as_array().unwrap().len(), 1);
    assert_eq!((&rest["deadLetters"][0]["delivery"], &rest["next"]), (&deliveries[2], &Value::Null));
}

const PATHS: [(&str, &str); 9] = [
    ("GET", ""),
    ("GET", "/1"),
    ("POST", "/1:pause"),
    ("POST", "/1:resume"),
    ("GET", "/dead-letters"),
    ("POST", "/dead-letters:retry"),
    ("POST", "/deliveries/1:retry"),
    ("GET", "/secret"),
    ("POST", "/secret:rotate"),
];

#[tokio::test]
async fn only_operators_are_let_in_and_only_with_the_right_method() {
    let world = Plan::with_keys().0.and_webhooks().start().await;
    let without = Plan::with_keys().0.start().await;
    for (method, path) in PATHS {
        let path = format!("/api/webhooks{path}");
        let anonymous = Ask::new(world.address, method, &path).reply().await;
        assert_eq!(
            (anonymous.status, anonymous.header("www-authenticate")),
            (401, "Bearer realm=\"switchboard\""),
            "{path}"
        );
        let wrong = Ask::new(world.address, method, &path).key("nonsense").reply().await;
        assert_eq!(wrong.status, 401, "{path}");
        let needed = if path.ends_with("/secret:rotate") { "admin" } else { "operator" };
        for caller in ["ann", "viewer", "operator", "admin"] {
            let reply = Ask::new(world.address, method, &path).key(caller).reply().await;
            let is_enough = path.ends_with("/secret") || caller == needed || caller == "admin";
            assert_eq!(reply.status == 403, !is_enough, "{caller} {path}: {}", reply.json());
            if !is_enough {
                assert!(reply.header("www-authenticate").contains("insufficient_scope"), "{path}");
                let role = if caller == "ann" { "none" } else { caller };
                let message = format!(
                    "this is for keys with the role {needed}, and the role of this key is {role}: create one with \
                     switchboard keys create --role {needed}"
                );
                assert_eq!(reply.json()["error"]["message"], message, "{path}");
            }
        }
        let other = if method == "GET" { "POST" } else { "GET" };
        let allow = if method == "GET" { "GET, HEAD" } else { "POST" };
        let reply = Ask::new(world.address, other, &path).key("operator").header("accept", "text/html").reply().await;
        assert_eq!((reply.status, reply.header("allow")), (405, allow), "{other} {path}");
        let page = Ask::new(world.address, method, &path).key("operator").header("origin", "https://evil.test");
        assert_eq!(page.reply().await.status, 403, "{path}");
        let none = Ask::new(without.address, method, &path).key("admin").reply().await;
        assert_eq!(none.status, 404, "{path}");
        assert_eq!(none.json()["error"]["message"], "this server was started without webhooks", "{path}");
    }
    for path in ["/api/webhooks/", "/api/webhooks/dead%2Dletters", "/api/webhooks?task=a+b%26"] {
        assert_eq!(world.get(path).key("operator").reply().await.status, 200, "{path}");
    }
    assert_eq!(post(&world, "/1%3Aresume").await.status, 404, "there is no webhook 1");
    for path in [
        "/api/webhook",
        "/api/webhooks2",
        "/api/webhooks/x",
        "/api/webhooks/+1",
        "/api/webhooks/99999999999999999999",
        "/api/webhooks/1:stop",
        "/api/webhooks/1/2",
        "/api/webhooks/deliveries/1",
        "/api/webhooks/deliveries/x:retry",
        "/api/webhooks/%ff",
        "/api/a2a/callback/%ff",
        "/api/nothing",
    ] {
        let reply = world.get(path).key("operator").reply().await;
        assert_eq!(reply.status, 404, "{path}");
        let message = reply.json()["error"]["message"].as_str().unwrap().to_owned();
        assert!(message.contains(path) && message.contains("webhooks for operators at /api/webhooks,"), "{message}");
    }
    let open = Plan::default().and_webhooks().start().await;
    let reply = open.get("/api/webhooks").reply().await;
    assert_eq!((reply.status, reply.json()), (200, json!({"webhooks": [], "next": null})));
}

#[tokio::test]
async fn wrong_parameters_are_named_with_what_would_be_right() {
    let world = Plan::default().and_webhooks().start().await;
    for (path, name, right) in [
        ("?state=running", "state", "active, paused, disabled or finished"),
        ("?pageSize=0", "pageSize", "1 to 100"),
        ("?pageSize=101", "pageSize", "1 to 100"),
        ("?pageSize=x", "pageSize", "1 to 100"),
        ("?after=-1", "after", "page before"),
        ("?after=x", "after", "page before"),
        ("/dead-letters?after=x", "after", "page before"),
        ("/dead-letters?pageSize=-5", "pageSize", "1 to 100"),
        ("?task=%ff", "task", "UTF-8"),
        ("?b+c=%C3%28", "b c", "UTF-8"),
        ("?%fe=1", "\u{fffd}", "UTF-8"),
        ("?state=a+b%26%zz", "state is \"a b&%zz\"", "active"),
    ] {
        let reply = world.get(&format!("/api/webhooks{path}")).reply().await;
        let error = reply.json()["error"].clone();
        assert_eq!((reply.status, &error["status"]), (400, &json!("INVALID_ARGUMENT")), "{path}: {error}");
        let message = error["message"].as_str().unwrap();
        assert!(message.contains(name) && message.contains(right), "{path}: {message}");
    }
}

#[tokio::test]
async fn an_unknown_parameter_is_refused_everywhere() {
    let world = Plan::default().and_webhooks().start().await;
    for (method, path) in PATHS {
        let known = match path {
            "" => "only task, taskId, state, after, pageSize",
            "/dead-letters" => "only after, pageSize",
            "/dead-letters:retry" => "only task, taskId",
            "/secret:rotate" => "only overlapSeconds",
            _ => "nor any other",
        };
        let reply = Ask::new(world.address, method, &format!("/api/webhooks{path}?limit=5")).reply().await;
        let error = reply.json()["error"].clone();
        assert_eq!((reply.status, &error["status"]), (400, &json!("INVALID_ARGUMENT")), "{path}: {error}");
        assert_eq!(error["message"], format!("there is no parameter \"limit\" here, {known}"), "{path}");
    }
}

#[tokio::test]
async fn it_is_not_counted_as_a2a_and_the_gauges_are_fresh() {
    let recorder = metrics_exporter_prometheus::PrometheusBuilder::new().build_recorder();
    // Tests run on one thread, the server's tasks too.
    let _counts = metrics::set_default_local_recorder(&recorder);
    let (mut plan, _) = Plan::with_keys();
    let handle = recorder.handle();
    plan.options.metrics = Some(RenderMetrics(Arc::new(move || handle.render())));
    let world = plan.and_webhooks().start().await;
    let mut receiver = Receiver::start().await;
    refused(&world, &mut receiver).await;
    let reply = world.get("/metrics").key("admin").reply().await;
    let text = String::from_utf8_lossy(&reply.body).into_owned();
    for line in [
        "a2a_webhook_dead_letters 1",
        "a2a_webhook_backlog 0",
        "a2a_webhook_oldest_undelivered_seconds 0",
        "a2a_requests_total{method=\"CreateTaskPushNotificationConfig\",agent=\"\",outcome=\"ok\"} 1",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is not in {text}");
    }
    assert!(!text.contains("method=\"unknown\""), "{text}");
}

#[tokio::test]
async fn an_open_server_that_gets_keys_keeps_its_webhooks() {
    let world =
        Plan { authenticator: Plan::with_keys().0.authenticator, ..Plan::default().and_webhooks() }.start().await;
    assert_eq!(world.get("/api/webhooks").reply().await.status, 200);
    let task = TaskId::from(busy_task(&world, "").await);
    let token = world.callbacks.open(&task).await.unwrap();
    world.keyed.cancel();
    assert_eq!(world.get("/api/webhooks").reply().await.status, 401);
    assert_eq!(get(&world, "").await["webhooks"], json!([]));
    let card = world.get("/.well-known/agent-card.json").reply().await.json();
    assert_eq!(card["capabilities"]["pushNotifications"], true);
    let body = json!({"task": {"id": "r", "contextId": "c", "status": {"state": "TASK_STATE_WORKING"}}});
    let told = world.post(&format!("/api/a2a/callback/{task}"), &body).key(&token).reply().await;
    assert_eq!(told.status, 200, "{}", told.json());
}

#[tokio::test]
async fn what_is_left_can_be_seen_where_webhooks_are_switched_off() {
    let mut plan = Plan::default().and_webhooks();
    plan.webhooks.as_mut().unwrap().0.enabled = false;
    let world = plan.start().await;
    assert_eq!(world.get("/api/webhooks").reply().await.status, 200);
    assert_eq!(world.get("/api/webhooks/dead-letters").reply().await.json(), json!({"deadLetters": [], "next": null}));
    let none = post(&world, "/dead-letters:retry").await;
    assert_eq!(none.json(), json!({"retried": 0}), "nothing waits for anything");
}
