//! `/api/bus/history`, `/api/bus/topology`, and the feed read backward.

use serde_json::{Value, json};

use crate::running::{Running, folder};

fn topics(items: &Value) -> Vec<&str> {
    items.as_array().unwrap().iter().map(|item| item["topic"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn the_feed_is_read_backward_page_by_page() {
    let data = folder();
    let running = Running::in_folder(data.path()).await;
    running.send("bob", "echo", "one").await;
    running.send("cat", "echo", "two").await;
    running.send("bob", "other", "fail").await;
    let (_, forward) = running.get("/api/feed?from=oldest&pageSize=100", "vic").await;
    let mut expected: Vec<&Value> = forward["items"].as_array().unwrap().iter().collect();
    expected.reverse();
    // Pages of every size have every item once, newest first.
    for size in 1..=12 {
        let (mut read, mut before) = (Vec::new(), "now".to_owned());
        loop {
            let (status, page) = running.get(&format!("/api/feed?before={before}&pageSize={size}"), "vic").await;
            assert_eq!(status, 200, "{page}");
            read.extend(page["items"].as_array().unwrap().iter().cloned());
            match page["next"].as_str() {
                Some(next) => next.clone_into(&mut before),
                None => break,
            }
        }
        assert_eq!(read.iter().collect::<Vec<_>>(), expected, "pages of {size}");
    }
    let (_, own) = running.get("/api/feed?before=now&topic=task.received.%23", "bob").await;
    assert_eq!(topics(&own["items"]), ["task.received.other", "task.received.echo"]);
    for (query, key) in [("before=x", "before"), ("before=now&from=oldest", "before")] {
        let (status, refusal) = running.get(&format!("/api/feed?{query}"), "vic").await;
        assert_eq!((status, &refusal["problems"][0]["key"]), (400, &json!(key)), "{refusal}");
    }
    let (status, refusal) = running.ask("GET /api/feed?before=now", "vic", &[], "").await;
    assert_eq!((status, &refusal["problems"][0]["key"]), (400, &json!("before")), "{refusal}");
    running.stop().await;
}

#[tokio::test]
async fn history_is_the_newest_items_or_those_of_a_tree() {
    let data = folder();
    let running = Running::in_folder(data.path()).await;
    let body = json!({ "message": "hello", "targets": ["echo", "other"], "wait": "30s" });
    let (_, task) = running.post("/api/dispatch", "bob", &body).await;
    let id = task["id"].as_str().unwrap();
    running.send("cat", "echo", "two").await;
    let (status, all) = running.get("/api/bus/history", "vic").await;
    assert_eq!((status, &all["data"]["complete"]), (200, &json!(true)), "{all}");
    let last = ["task.received.echo", "task.artifact.echo", "task.completed.echo", "outcome.echo.-"];
    let (_, newest) = running.get("/api/bus/history?limit=4", "vic").await;
    assert_eq!((topics(&newest["data"]["items"]), &newest["data"]["complete"]), (last.to_vec(), &json!(false)));

    // The tree: the fan-out and both children, in order, and nothing else.
    let (_, tree) = running.get(&format!("/api/bus/history?correlationId={id}"), "bob").await;
    let items = &tree["data"]["items"];
    let of_tree: Vec<&Value> =
        all["data"]["items"].as_array().unwrap().iter().filter(|item| item["correlationId"] == id).collect();
    assert_eq!(items.as_array().unwrap().iter().collect::<Vec<_>>(), of_tree, "{tree}");
    assert_eq!((items[0]["topic"].as_str(), &tree["data"]["complete"]), (Some("task.received._fanout"), &json!(true)));
    assert!(topics(items).contains(&"task.completed.other"), "{items}");
    let (_, foreign) = running.get(&format!("/api/bus/history?correlationId={id}"), "cat").await;
    assert_eq!(foreign["data"]["items"], json!([]));
    // One that came with a message over A2A is looked for in the feed.
    let message = json!({ "parts": [{ "text": "hi" }] });
    running.send_with("bob", "echo", message, &["X-Correlation-Id: c-9"]).await;
    let (_, by_header) = running.get("/api/bus/history?correlationId=c-9", "vic").await;
    assert_eq!(topics(&by_header["data"]["items"]), last);
    let (status, refusal) = running.get("/api/bus/history?limit=1001", "vic").await;
    assert_eq!((status, &refusal["problems"][0]["key"]), (400, &json!("limit")));

    let (_, topology) = running.get("/api/bus/topology", "vic").await;
    assert_eq!(topology["data"]["topics"]["task.*.*"]["publishedBy"], json!(["kernel"]), "{topology}");
    assert_eq!(running.get("/api/bus/topology", "bob").await.0, 403);
    // It has the topics of the documentation, and no others.
    let known: Vec<&str> = topology["data"]["topics"].as_object().unwrap().keys().map(String::as_str).collect();
    let page = include_str!("../../../../docs/hub.md");
    let (_, table) = page.split_once("| topic | when |").unwrap();
    let rows = table.lines().skip(1).take_while(|line| line.starts_with('|'));
    let documented: Vec<&str> =
        rows.flat_map(|row| row.split(" | ").next().unwrap().split('`').skip(1).step_by(2)).collect();
    let is_name = |word: &str| word.bytes().all(|byte| byte.is_ascii_uppercase());
    let is_same = |pattern: &str, topic: &str| {
        let (pattern, topic): (Vec<&str>, Vec<&str>) = (pattern.split('.').collect(), topic.split('.').collect());
        let fits =
            |(wanted, given): (&&str, &&str)| wanted == given || *wanted == "*" || *wanted == "#" || is_name(given);
        pattern.len() == topic.len() && pattern.iter().zip(&topic).all(fits)
    };
    for topic in &documented {
        assert!(known.iter().any(|pattern| is_same(pattern, topic)), "{topic} is missing in {known:?}");
    }
    for pattern in known.iter().filter(|pattern| **pattern != "#") {
        assert!(documented.iter().any(|topic| is_same(pattern, topic)), "{pattern} is missing in {documented:?}");
    }
    // The routes that read them, by their own patterns.
    let content = json!({ "name": "ship", "when": { "topic": "release.#" }, "then": { "targets": ["echo"] } });
    let (status, added) = running.post("/api/routes", "ann", &content).await;
    assert_eq!(status, 201, "{added}");
    let (_, topology) = running.get("/api/bus/topology", "vic").await;
    assert_eq!(topology["data"]["topics"]["release.#"], json!({ "publishedBy": [], "subscribedBy": ["route:ship"] }));
    running.stop().await;
}
