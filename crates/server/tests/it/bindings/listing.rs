//! Listing tasks: pages, filters, and only the caller's own.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use super::dialects::{ALL, Operation, TestDialect};
use super::world::{Plan, World};

async fn list(world: &World, key: &str, query: &str) -> Value {
    let reply = world.get(&format!("/a2a/tasks?{query}")).version("1.0").key(key).reply().await;
    let json = reply.json();
    assert_eq!(reply.status, 200, "{query}: {json}");
    json
}

async fn send(world: &World, key: &str, text: &str, context: &str) -> Value {
    let mut message = TestDialect::RestV1.message(text);
    message["contextId"] = context.into();
    let reply = world.post("/a2a/message:send", &json!({"message": message})).version("1.0").key(key).reply().await;
    TestDialect::RestV1.sent_task(&reply)
}

fn ids(page: &Value) -> Vec<String> {
    page["tasks"].as_array().unwrap().iter().map(|task| task["id"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn pages_follow_each_other_newest_first() {
    let (plan, _) = Plan::with_keys();
    let world = plan.start().await;
    let mut sent = Vec::new();
    for number in 0..5 {
        sent.push(send(&world, "ann", &format!("task {number}"), "c").await["id"].as_str().unwrap().to_owned());
    }
    sent.reverse();
    let first = list(&world, "ann", "pageSize=2").await;
    assert_eq!((&first["pageSize"], &first["totalSize"]), (&json!(2), &json!(5)));
    let token = first["nextPageToken"].as_str().unwrap();
    assert!(!token.is_empty());
    let second = list(&world, "ann", &format!("pageSize=2&pageToken={token}")).await;
    let token = second["nextPageToken"].as_str().unwrap();
    let third = list(&world, "ann", &format!("pageSize=2&pageToken={token}")).await;
    assert_eq!(third["nextPageToken"], "");
    assert_eq!([ids(&first), ids(&second), ids(&third)].concat(), sent);
    let whole = list(&world, "ann", "").await;
    assert_eq!((ids(&whole), &whole["pageSize"], &whole["nextPageToken"]), (sent, &json!(50), &json!("")));
}

#[tokio::test]
async fn filters_are_exact_and_tokens_belong_to_them() {
    let (plan, _) = Plan::with_keys();
    let world = plan.start().await;
    for (text, context) in [("hello", "red"), ("hello", "red"), ("ask", "red"), ("fail", "blue")] {
        send(&world, "ann", text, context).await;
    }
    for (query, total) in [
        ("contextId=red", 3),
        ("contextId=green", 0),
        ("status=TASK_STATE_COMPLETED", 2),
        ("status=TASK_STATE_INPUT_REQUIRED&contextId=red", 1),
        ("status=TASK_STATE_INPUT_REQUIRED&contextId=blue", 0),
        ("statusTimestampAfter=2020-01-01T00%3A00%3A00Z", 4),
        ("statusTimestampAfter=2100-01-01T00%3A00%3A00Z", 0),
    ] {
        let page = list(&world, "ann", query).await;
        assert_eq!((&page["totalSize"], ids(&page).len()), (&json!(total), total), "{query}: {page}");
    }
    // The filter is inclusive.
    let newest = &list(&world, "ann", "pageSize=1").await["tasks"][0]["status"]["timestamp"];
    let since = newest.as_str().unwrap().replace(':', "%3A");
    assert_eq!(list(&world, "ann", &format!("statusTimestampAfter={since}")).await["totalSize"], json!(1));
    let page = list(&world, "ann", "contextId=red&pageSize=1").await;
    let token = page["nextPageToken"].as_str().unwrap();
    assert_eq!(ids(&list(&world, "ann", &format!("contextId=red&pageToken={token}")).await).len(), 2);
    for (key, path) in [
        ("ann", format!("/a2a/tasks?pageToken={token}")),
        ("ann", format!("/a2a/tasks?contextId=blue&pageToken={token}")),
        ("ann", format!("/a2a/worker/tasks?contextId=red&pageToken={token}")),
        ("bob", format!("/a2a/tasks?contextId=red&pageToken={token}")),
        ("ann", "/a2a/tasks?pageToken=nonsense".to_owned()),
        ("ann", "/a2a/tasks?pageSize=0".to_owned()),
        ("ann", "/a2a/tasks?pageSize=101".to_owned()),
        ("ann", "/a2a/tasks?status=TASK_STATE_NONSENSE".to_owned()),
        ("ann", "/a2a/tasks?historyLength=-1".to_owned()),
    ] {
        let reply = world.get(&path).version("1.0").key(key).reply().await;
        assert_eq!(reply.status, 400, "{key} {path}: {}", reply.json());
    }
}

#[tokio::test]
async fn artifacts_and_history_come_as_asked() {
    let (plan, _) = Plan::with_keys();
    let world = plan.start().await;
    send(&world, "ann", "hello", "c").await;
    send(&world, "ann", "fail", "c").await;
    let plain = list(&world, "ann", "").await;
    for task in plain["tasks"].as_array().unwrap() {
        assert!(task.get("artifacts").is_none(), "{task}");
        assert_eq!(task["history"].as_array().unwrap().len(), 1, "{task}");
    }
    let full = list(&world, "ann", "includeArtifacts=true&historyLength=0").await;
    let counts: Vec<usize> =
        full["tasks"].as_array().unwrap().iter().map(|task| task["artifacts"].as_array().unwrap().len()).collect();
    assert_eq!(counts, [0, 1]);
    assert!(full["tasks"].as_array().unwrap().iter().all(|task| task.get("history").is_none()), "{full}");
}

#[tokio::test]
async fn callers_see_their_own_tasks_only() {
    let (plan, _) = Plan::with_keys();
    let world = plan.start().await;
    let anns = send(&world, "ann", "ask", "shared").await;
    let bobs = send(&world, "bob", "ask", "shared").await;
    for (key, own) in [("ann", &anns), ("bob", &bobs)] {
        let page = list(&world, key, "contextId=shared").await;
        assert_eq!((ids(&page), &page["totalSize"]), (vec![own["id"].as_str().unwrap().to_owned()], &json!(1)));
    }
    // Another caller's task is as good as none, whatever one does with it.
    let id = anns["id"].as_str().unwrap();
    let answer = json!({"message": TestDialect::RestV1.answer("Rome", id)});
    let foreign = world.get(&format!("/a2a/tasks/{id}")).version("1.0").key("bob").reply().await;
    let missing = world.get("/a2a/tasks/none").version("1.0").key("bob").reply().await;
    assert_eq!(foreign.json().to_string().replace(id, "none"), missing.json().to_string());
    for ask in [
        world.get(&format!("/a2a/tasks/{id}:cancel")).post(),
        world.get(&format!("/a2a/tasks/{id}:subscribe")),
        world.post("/a2a/message:send", &answer),
    ] {
        assert_eq!(ask.version("1.0").key("bob").reply().await.status, 404);
    }
}

#[tokio::test]
async fn a_parameter_that_is_no_text_is_refused_and_not_left_out() {
    let world = World::start().await;
    TestDialect::RestV1.sent_task(&TestDialect::RestV1.send(&world, "hello").reply().await);
    for (query, name) in [("contextId=%ff", "contextId"), ("pageSize=5&status=%C3%28", "status"), ("a%20b=%80", "a b")]
    {
        let reply = world.get(&format!("/a2a/tasks?{query}")).version("1.0").reply().await;
        assert_eq!(
            TestDialect::RestV1.error(&reply),
            (400, 0, "INVALID_PARAMS".to_owned()),
            "{query}: {}",
            reply.json()
        );
        assert_eq!(reply.json()["error"]["details"][1]["fieldViolations"][0]["field"], name, "{query}");
    }
    let body = json!({"jsonrpc": "2.0", "id": 7, "method": "ListTasks", "params": {}});
    let reply = world.post("/a2a?tenant=%ff", &body).reply().await;
    assert_eq!(reply.json()["error"]["code"], -32602, "{}", reply.json());
    assert!(reply.json()["error"]["message"].as_str().unwrap().contains("tenant"), "{}", reply.json());
    let reply = world.get("/a2a/tasks?a2a-version=%ff").reply().await;
    assert_eq!(TestDialect::RestV1.error(&reply), (400, 0, "VERSION_NOT_SUPPORTED".to_owned()));
    for path in ["/a2a/tasks/%ff", "/a2a/%ff/tasks", "/a2a/%ff/.well-known/agent-card.json"] {
        assert_eq!(world.get(path).version("1.0").reply().await.status, 404, "{path}");
    }
}

#[tokio::test]
async fn every_door_lists_tasks_in_its_own_form() {
    let world = World::start().await;
    let sent = TestDialect::RestV1.sent_task(&TestDialect::RestV1.send(&world, "hello").reply().await);
    for dialect in ALL {
        let page = dialect.result(&dialect.ask(&world, "", Operation::List).reply().await);
        let (token, size, total) = (&page["nextPageToken"], &page["pageSize"], &page["totalSize"]);
        assert_eq!((token, size, total), (&json!(""), &json!(50), &json!(1)), "{dialect:?}");
        let task = &page["tasks"][0];
        assert_eq!(
            (&task["id"], &task["status"]["state"]),
            (&sent["id"], &json!(dialect.state("completed"))),
            "{dialect:?}"
        );
        assert!(task.get("artifacts").is_none(), "{dialect:?}: {task}");
        let kind = if dialect == TestDialect::RpcV03 { json!("task") } else { Value::Null };
        let parts = if dialect == TestDialect::RestV03 { "content" } else { "parts" };
        assert_eq!(
            (&task["kind"], &task["history"][0][parts][0]["text"]),
            (&kind, &json!("hello")),
            "{dialect:?}: {task}"
        );
    }
}

#[tokio::test]
async fn version_0_3_lists_by_filter_and_page_too() {
    let (plan, _) = Plan::with_keys();
    let world = plan.start().await;
    for (text, context) in [("one", "red"), ("two", "red"), ("ask", "red"), ("four", "blue")] {
        send(&world, "ann", text, context).await;
    }
    let rpc = async |params: Value| {
        let body = json!({"jsonrpc": "2.0", "id": 7, "method": "tasks/list", "params": params});
        TestDialect::RpcV03.result(&world.post("/a2a", &body).key("ann").reply().await)
    };
    let first = rpc(json!({"contextId": "red", "pageSize": 2, "includeArtifacts": true})).await;
    assert_eq!((ids(&first).len(), &first["totalSize"]), (2, &json!(3)));
    let artifact = &first["tasks"][1]["artifacts"][0]["parts"][0];
    assert_eq!(artifact["kind"], "text", "{first}");
    let token = &first["nextPageToken"];
    let second = rpc(json!({"contextId": "red", "pageSize": 2, "includeArtifacts": true, "pageToken": token})).await;
    assert_eq!(ids(&second).len(), 1, "{second}");
    assert_eq!(ids(&rpc(json!({"status": "input-required"})).await), ids(&first)[..1]);

    let rest = world.get("/a2a/v1/tasks?contextId=red&status=TASK_STATE_INPUT_REQUIRED").key("ann").reply().await;
    assert_eq!(ids(&TestDialect::RestV03.result(&rest)), ids(&first)[..1]);
    let others = world.get("/a2a/v1/tasks").key("bob").reply().await;
    assert_eq!(TestDialect::RestV03.result(&others)["totalSize"], 0);
}

#[tokio::test]
async fn a_page_is_cut_where_it_grows_too_large_and_goes_on_in_the_next() {
    const LIMIT: usize = 160_000;
    const LARGE: usize = 60_000;
    let mut plan = Plan::default();
    plan.options.page = LIMIT;
    let world = plan.start().await;
    let mut sent = Vec::new();
    for length in [LIMIT + 10, LARGE, LARGE, 5, LARGE, LARGE] {
        let text = "x".repeat(length);
        sent.push(send(&world, "", &text, "c").await["id"].as_str().unwrap().to_owned());
    }
    sent.reverse();
    let (mut seen, mut sizes, mut token) = (Vec::new(), Vec::new(), String::new());
    loop {
        let path = format!("/a2a/tasks?pageSize=100&pageToken={token}");
        let reply = world.get(&path).version("1.0").reply().await;
        let page = reply.json();
        let alone = ids(&page).len() == 1;
        assert!(alone || reply.body.len() < LIMIT + 200, "{} bytes", reply.body.len());
        assert_eq!((&page["totalSize"], &page["pageSize"]), (&json!(6), &json!(100)), "what was asked for");
        sizes.push(ids(&page).len());
        seen.extend(ids(&page));
        token = page["nextPageToken"].as_str().unwrap().to_owned();
        if token.is_empty() {
            break;
        }
    }
    assert_eq!((seen, sizes), (sent.clone(), vec![3, 2, 1]));
    // It is the size of the answer that counts, not that of the tasks.
    assert_eq!(ids(&list(&world, "", "historyLength=0").await), sent);
}

#[tokio::test]
async fn page_tokens_do_not_count_the_tasks_of_others() {
    let (plan, _) = Plan::with_keys();
    let world = plan.start().await;
    let token_of = async |key: &str| {
        for _ in 0..2 {
            send(&world, key, "hello", "c").await;
        }
        list(&world, key, "pageSize=1").await["nextPageToken"].as_str().unwrap().to_owned()
    };
    let first = token_of("ann").await;
    for _ in 0..3 {
        send(&world, "bob", "hello", "c").await;
    }
    let second = token_of("ann").await;
    // The sixth and the first task of this server: nothing of that is to be seen in any eight bytes of a token.
    for token in [first, second] {
        let bytes = URL_SAFE_NO_PAD.decode(&token).unwrap();
        let numbers = bytes.windows(8).map(|window| u64::from_be_bytes(window.try_into().unwrap()));
        assert!(numbers.clone().all(|number| number > 1_000), "{token}");
        assert!(numbers.clone().all(|number| number.swap_bytes() > 1_000), "{token}");
    }
}
