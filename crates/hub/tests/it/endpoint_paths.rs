//! Which endpoint a path leads to: names that words of paths have taken, and ids with colons.

use serde_json::json;

use crate::card_server::CardServer;
use crate::running::{Running, folder};

#[tokio::test]
async fn a_word_of_a_path_hides_no_other_method_of_the_name_that_it_stands_for() {
    let (data, files) = (folder(), folder());
    std::fs::write(files.path().join("agents.yaml"), "agents: [{ name: echo, builtin: echo }]\n").unwrap();
    let far = CardServer::start(&["review"]).await;
    let running = Running::of_workspace(data.path(), files.path(), |_| {}).await;
    let (status, list) = running.get("/api/agents/runtime", "ann").await;
    assert_eq!((status, &list["data"]["agents"][0]["name"]), (200, &json!("echo")), "{list}");
    // There is no such agent, which is what the other methods say.
    let item = json!({ "name": "runtime", "url": far.url }).to_string();
    for (head, body, right) in [
        ("PUT /api/agents/runtime", item.as_str(), (400, "INVALID")),
        ("DELETE /api/agents/runtime", "", (404, "NOT_FOUND")),
        ("POST /api/agents/runtime:refresh", "", (404, "NOT_FOUND")),
        ("POST /api/agents/runtime", "{}", (405, "METHOD_NOT_ALLOWED")),
    ] {
        let (status, refusal) = running.ask(head, "ann", &[], body).await;
        assert_eq!((status, refusal["code"].as_str().unwrap()), right, "{head}: {refusal}");
    }
    running.stop().await;
}

#[tokio::test]
async fn an_id_may_have_a_colon_where_no_verb_is_behind_it() {
    let data = folder();
    let running = Running::in_folder(data.path()).await;
    let body = json!({ "agent": "echo", "skill": "acting", "message": "hello" }).to_string();
    let id = "X-Correlation-Id: job:17";
    let (status, delegated) = running.ask("POST /api/a2a/delegate", "bob", &[id], &body).await;
    assert_eq!((status, &delegated["data"]["correlationId"]), (202, &json!("job:17")), "{delegated}");
    for path in ["/api/a2a/task/job:17", "/api/a2a/task/job%3A17"] {
        let (status, polled) = running.get(path, "bob").await;
        assert_eq!((status, &polled["data"]["taskId"]), (200, &delegated["data"]["taskId"]), "{path}: {polled}");
    }
    let task = delegated["data"]["taskId"].as_str().unwrap();
    for (head, right) in [
        // Of another endpoint, which has the verb and another method.
        (format!("GET /api/tasks/{task}:cancel"), (405, "METHOD_NOT_ALLOWED")),
        ("GET /api/agents/echo:refresh".to_owned(), (405, "METHOD_NOT_ALLOWED")),
        // No verb that there is, so part of the id.
        (format!("GET /api/tasks/{task}:17"), (404, "NOT_FOUND")),
        ("GET /api/tasks/job:17/tree".to_owned(), (404, "NOT_FOUND")),
    ] {
        let (status, refusal) = running.ask(&head, "bob", &[], "").await;
        assert_eq!((status, refusal["code"].as_str().unwrap()), right, "{head}: {refusal}");
    }
    running.stop().await;
}
