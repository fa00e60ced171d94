//! `/api/tasks`, its trees, `/api/invocations` and `:cancel`: what each key may see and stop.

use serde_json::{Value, json};

use crate::running::{Running, folder};

fn ids(page: &Value) -> Vec<String> {
    page["items"].as_array().unwrap().iter().map(|item| item["taskId"].as_str().unwrap().to_owned()).collect()
}

async fn dispatch(running: &Running, key: &str, text: &str, target: Value) -> String {
    let body = json!({ "message": text, "targets": target, "wait": "30s" });
    let (status, task) = running.post("/api/dispatch", key, &body).await;
    assert_eq!(status, 200, "{task}");
    task["id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn lists_have_what_a_key_may_see_page_by_page() {
    let data = folder();
    let running = Running::in_folder(data.path()).await;
    let first = dispatch(&running, "bob", "hello\nthere", json!("echo")).await;
    let second = dispatch(&running, "bob", "fail", json!("other")).await;
    let third = dispatch(&running, "cat", "ask", json!("echo")).await;
    let by_a2a = running.send("cat", "echo", "hi").await["id"].as_str().unwrap().to_owned();

    let list = async |path: &str, key: &str| {
        let (status, page) = running.get(path, key).await;
        assert_eq!(status, 200, "{path} {page}");
        ids(&page)
    };
    assert_eq!(list("/api/tasks", "vic").await, [&by_a2a, &third, &second, &first].map(String::as_str));
    assert_eq!(list("/api/tasks", "eva").await, [&by_a2a, &third, &first].map(String::as_str));
    assert_eq!(list("/api/tasks", "bob").await, [&second, &first].map(String::as_str));
    assert_eq!(list("/api/tasks?owner=bob&agent=other", "vic").await, [second.as_str()]);
    assert_eq!(list("/api/tasks?agent=other", "eva").await, Vec::<String>::new());
    assert_eq!(list("/api/tasks?state=input_required", "vic").await, [third.as_str()]);
    assert_eq!(list("/api/tasks?via=a2a&owner=cat", "vic").await, [by_a2a.as_str()]);
    assert_eq!(list(&format!("/api/tasks?q={first}"), "vic").await, [first.as_str()]);
    assert_eq!(list(&format!("/api/tasks?q={first}"), "cat").await, Vec::<String>::new());
    assert_eq!(list("/api/tasks?before=2000-01-01T00:00:00Z", "vic").await, Vec::<String>::new());

    let (_, page) = running.get("/api/tasks?pageSize=1", "bob").await;
    let item = &page["items"][0];
    assert_eq!((&item["owner"], &item["state"], &item["via"]), (&json!("bob"), &json!("failed"), &json!("api")));
    assert_eq!((&item["title"], &item["routing"]["agent"]), (&json!("fail"), &json!("other")), "{item}");
    let next = page["next"].as_str().unwrap();
    let (_, page) = running.get(&format!("/api/tasks?pageSize=1&after={next}"), "bob").await;
    assert_eq!(
        (ids(&page), &page["next"], &page["items"][0]["title"]),
        (vec![first.clone()], &Value::Null, &json!("hello"))
    );
    // A token is for its own question.
    let (status, refusal) = running.get(&format!("/api/tasks?after={next}"), "cat").await;
    assert_eq!((status, &refusal["problems"][0]["key"]), (400, &json!("after")));
    for (path, key) in
        [("state=gone", "state"), ("via=post", "via"), ("since=now", "since"), ("pageSize=0", "pageSize")]
    {
        let (status, refusal) = running.get(&format!("/api/tasks?{path}"), "bob").await;
        assert_eq!((status, &refusal["problems"][0]["key"]), (400, &json!(key)), "{refusal}");
    }
    assert_eq!(running.get("/api/tasks?owner=cat", "bob").await.0, 403);

    assert_eq!(running.get(&format!("/api/tasks/{second}"), "vic").await.0, 200);
    for (path, key) in [(&second, "eva"), (&second, "cat"), (&"none".to_owned(), "vic")] {
        let (status, refusal) = running.get(&format!("/api/tasks/{path}"), key).await;
        assert_eq!((status, &refusal["code"]), (404, &json!("NOT_FOUND")), "{refusal}");
    }

    // What has ended, as outcomes.
    let (_, page) = running.get("/api/invocations", "vic").await;
    assert_eq!(ids(&page), [&by_a2a, &second, &first].map(String::as_str));
    let outcome = &page["items"][1];
    assert_eq!((&outcome["success"], &outcome["state"]), (&json!(false), &json!("failed")), "{outcome}");
    assert_eq!((&outcome["actor"], &outcome["agent"]), (&json!("bob"), &json!("other")));
    assert_eq!((&outcome["owner"], &outcome["routing"]["by"]), (&json!("bob"), &json!("target")), "{outcome}");
    assert_eq!(list("/api/invocations?via=a2a", "vic").await, [by_a2a.as_str()]);
    assert_eq!(list("/api/invocations?via=api&owner=bob", "vic").await, [&second, &first].map(String::as_str));
    let (_, page) = running.get("/api/invocations?pageSize=1", "bob").await;
    let next = page["next"].as_str().unwrap();
    let (_, rest) = running.get(&format!("/api/invocations?pageSize=1&after={next}"), "bob").await;
    assert_eq!((ids(&page), ids(&rest), &rest["next"]), (vec![second], vec![first], &Value::Null));
    let (status, refusal) = running.get("/api/invocations?state=working", "bob").await;
    assert_eq!((status, &refusal["problems"][0]["key"]), (400, &json!("state")));
    running.stop().await;
}

#[tokio::test]
async fn a_tree_has_every_task_below_its_root_and_the_sum_of_their_cost() {
    let data = folder();
    let running = Running::in_folder(data.path()).await;
    let root = dispatch(&running, "bob", "pay 2", json!(["echo", "other"])).await;
    let (status, tree) = running.get(&format!("/api/tasks/{root}/tree"), "bob").await;
    assert_eq!((status, &tree["task"], &tree["agent"]), (200, &json!(root), &json!("~fanout")), "{tree}");
    assert_eq!((&tree["own"]["costUsd"], &tree["total"]["costUsd"]), (&json!(0.0), &json!(4.0)), "{tree}");
    assert_eq!((&tree["total"]["inputTokens"], &tree["next"]), (&json!(20), &Value::Null));
    let children = tree["children"].as_array().unwrap();
    let agents: Vec<&str> = children.iter().map(|child| child["agent"].as_str().unwrap()).collect();
    assert_eq!(agents, ["echo", "other"]);
    assert_eq!((&children[0]["own"]["costUsd"], &children[0]["state"]), (&json!(2.0), &json!("completed")));
    assert_eq!((tree["at"].is_string(), tree["ended"].is_string()), (true, true), "{tree}");
    let (_, listed) = running.get("/api/invocations", "bob").await;
    let agents: Vec<&str> =
        listed["items"].as_array().unwrap().iter().map(|it| it["agent"].as_str().unwrap()).collect();
    assert_eq!(agents.len(), 2, "the fan-out itself is none: {agents:?}");
    // A child's tree is that of its root.
    let child = children[1]["task"].as_str().unwrap();
    assert_eq!(running.get(&format!("/api/tasks/{child}/tree"), "vic").await.1["task"], json!(root));
    // The root is a fan-out, which a viewer of one agent does not see; nor does another caller.
    for key in ["eva", "cat"] {
        assert_eq!(running.get(&format!("/api/tasks/{child}/tree"), key).await.0, 404, "{key}");
    }
    // Page by page: each has the root and so many of those below it.
    let (_, page) = running.get(&format!("/api/tasks/{root}/tree?pageSize=2"), "bob").await;
    let below = |page: &Value| -> Vec<String> {
        let children = page["children"].as_array().unwrap().iter();
        children.map(|child| child["agent"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!((below(&page), &page["total"]["costUsd"]), (vec!["echo".to_owned()], &json!(4.0)), "{page}");
    let next = page["next"].as_str().unwrap();
    let (_, page) = running.get(&format!("/api/tasks/{root}/tree?pageSize=2&after={next}"), "bob").await;
    assert_eq!((&page["task"], below(&page), &page["next"]), (&json!(root), vec!["other".to_owned()], &Value::Null));
    let (status, refusal) = running.get(&format!("/api/tasks/{root}/tree?after=none"), "bob").await;
    assert_eq!((status, &refusal["problems"][0]["key"]), (400, &json!("after")), "{refusal}");
    // The task itself sees its own list of fan-outs, also with a key of one agent.
    let own = dispatch(&running, "cat", "hi", json!("all")).await;
    let (_, list) = running.get("/api/tasks?agent=~fanout", "cat").await;
    assert_eq!(ids(&list), [own]);
    running.stop().await;
}

#[tokio::test]
async fn what_a_fan_out_over_the_api_has_asked_came_over_the_api_too() {
    let data = folder();
    let running = Running::in_folder(data.path()).await;
    dispatch(&running, "bob", "hello", json!(["echo", "other"])).await;
    running.send("bob", "echo", "hi").await;
    let found = async |path: &str| -> Vec<(Value, Value)> {
        let (status, page) = running.get(path, "bob").await;
        assert_eq!(status, 200, "{page}");
        let items = page["items"].as_array().unwrap().iter();
        let mut found: Vec<_> = items.map(|item| (item["agent"].clone(), item["via"].clone())).collect();
        found.sort_by_key(|(agent, _)| agent.to_string());
        found
    };
    let came = |agent: &str, via: &str| (json!(agent), json!(via));
    // The fan-out itself is no outcome.
    assert_eq!(found("/api/invocations?via=api").await, [came("echo", "api"), came("other", "api")]);
    assert_eq!(found("/api/invocations?via=a2a").await, [came("echo", "a2a")]);
    let all = [came("echo", "api"), came("other", "api"), came("~fanout", "api")];
    assert_eq!(found("/api/tasks?via=api").await, all);
    running.stop().await;
}

#[tokio::test]
async fn an_operator_stops_a_task_of_any_caller_once() {
    let data = folder();
    let running = Running::in_folder(data.path()).await;
    let task = dispatch(&running, "bob", "ask", json!("echo")).await;
    let path = format!("/api/tasks/{task}:cancel");
    for key in ["bob", "vic"] {
        let (status, refusal) = running.post(&path, key, &json!({})).await;
        assert_eq!(status, 403, "{key}: {refusal}");
    }
    let (status, stopped) = running.post(&path, "ann", &json!({})).await;
    assert_eq!((status, &stopped["status"]["state"]), (200, &json!("TASK_STATE_CANCELED")), "{stopped}");
    let (status, refusal) = running.post(&path, "ann", &json!({})).await;
    assert_eq!((status, &refusal["code"]), (409, &json!("NOT_RUNNING")), "{refusal}");
    assert_eq!(running.post("/api/tasks/none:cancel", "ann", &json!({})).await.0, 404);
    let (_, page) = running.get("/api/feed?from=oldest&topic=audit.%23", "ann").await;
    let lines = page["items"].as_array().unwrap();
    assert_eq!((lines.len(), &lines[0]["topic"]), (1, &json!("audit.tasks.cancel")), "{page}");
    let payload = &lines[0]["payload"];
    assert_eq!((&payload["caller"], &payload["subject"]), (&json!("ann"), &json!(task)));
    assert_eq!(
        (&payload["before"]["state"], &payload["after"]["state"]),
        (&json!("input_required"), &json!("canceled"))
    );
    running.stop().await;
}

#[tokio::test]
async fn a_key_with_a_role_and_some_agents_sees_its_own_fan_outs_in_lists() {
    let data = folder();
    let running = Running::in_folder(data.path()).await;
    let fan_out = async |key: &str, text: &str| {
        let body = json!({ "message": text, "targets": ["echo"], "fanout": "all", "wait": "30s" });
        let (status, task) = running.post("/api/dispatch", key, &body).await;
        assert_eq!(status, 200, "{task}");
        task["id"].as_str().unwrap().to_owned()
    };
    let (others, own) = (fan_out("bob", "hello").await, fan_out("eva", "hello").await);
    let list = async |path: &str, key: &str| ids(&running.get(path, key).await.1);
    let all = list("/api/tasks", "eva").await;
    assert!(all.contains(&own) && !all.contains(&others), "{all:?}");
    assert_eq!(all.len(), 3, "and what both have had echo do: {all:?}");
    assert_eq!(list("/api/tasks?agent=~fanout", "eva").await, [own.as_str()]);
    assert_eq!(list("/api/tasks?agent=~fanout&owner=eva", "eva").await, [own.as_str()]);
    assert_eq!(list("/api/tasks?agent=~fanout&owner=bob", "eva").await, Vec::<String>::new());
    assert_eq!(list("/api/tasks?owner=bob", "eva").await.len(), 1, "not bob's fan-out");
    assert_eq!(list("/api/tasks?state=completed&pageSize=2", "eva").await.len(), 2);
    assert_eq!(list("/api/tasks?agent=~fanout", "vic").await, [&own, &others].map(String::as_str));
    // Its open question too; the child that asks and the fan-out that waits for it.
    fan_out("bob", "ask").await;
    fan_out("eva", "ask").await;
    let (_, overview) = running.get("/api/overview", "eva").await;
    assert_eq!((&overview["live"]["inputRequired"], &overview["questions"]["open"]), (&json!(3), &json!(3)));
    let oldest = overview["questions"]["oldest"].as_array().unwrap();
    let of_fanout = oldest.iter().filter(|question| question["agent"] == "~fanout").count();
    assert_eq!((oldest.len(), of_fanout), (3, 1), "{overview}");
    running.stop().await;
}
