//! Listing tasks: pages, filters, and nobody else's.

use serde_json::{Value, json};

use super::doors::Door;
use super::world::{Plan, World};

async fn list(world: &World, key: &str, query: &str) -> Value {
    let reply = world.get(&format!("/a2a/tasks?{query}")).version("1.0").key(key).reply().await;
    let json = reply.json();
    assert_eq!(reply.status, 200, "{query}: {json}");
    json
}

async fn send(world: &World, key: &str, text: &str, context: &str) -> Value {
    let mut message = Door::RestV1.message(text);
    message["contextId"] = context.into();
    let reply = world.post("/a2a/message:send", &json!({"message": message})).version("1.0").key(key).reply().await;
    Door::RestV1.sent_task(&reply)
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
    // Somebody else's task is as good as none, whatever one does with it.
    let id = anns["id"].as_str().unwrap();
    let answer = json!({"message": Door::RestV1.answer("Rome", id)});
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
