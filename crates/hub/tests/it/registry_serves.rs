//! An agent of another server, served here because a file lists it.

use serde_json::Value;
use switchboard_host::serve::FirstServed;

use crate::card_server::CardServer;
use crate::running::{Running, folder};

#[tokio::test]
async fn three_lines_in_a_file_serve_an_agent_of_another_server() {
    let (far_data, data, files) = (folder(), folder(), folder());
    let far = Running::in_folder(far_data.path()).await;
    let entry = |name: &str, more: &str| {
        let (url, headers) = (format!("http://{}/a2a/echo", far.address), "{ Authorization: Bearer ann }");
        format!("  - name: {name}\n    url: {url}\n    headers: {headers}\n{more}")
    };
    let agents = format!("agents:\n{}{}", entry("far", ""), entry("called", "    serve: false\n"));
    std::fs::write(files.path().join("agents.yaml"), agents).unwrap();
    let here = Running::of_workspace(data.path(), files.path(), |_| {}).await;
    let task = here.send("ann", "far", "hello").await;
    assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED", "{task}");
    assert!(task.to_string().contains("HELLO"), "{task}");
    let (_, shown) = here.ask("POST /api/agents/far:refresh", "ann", &[], "").await;
    assert_eq!((&shown["served"], &shown["skills"][0]["id"]), (&true.into(), &"acting".into()), "{shown}");
    let (status, card) = here.get("/a2a/far/.well-known/agent-card.json", "").await;
    assert_eq!((status, &card["skills"][0]["id"]), (200, &"acting".into()), "{card}");

    let (_, shown) = here.get("/api/agents/called", "ann").await;
    assert_eq!(shown["served"], Value::Bool(false));
    let (status, _) = here.get("/a2a/called/.well-known/agent-card.json", "").await;
    assert_eq!(status, 404, "it is for commands only");
    here.stop().await;
    far.stop().await;
}

#[tokio::test]
async fn only_what_a_start_serves_for_the_first_time_is_named_and_without_its_key() {
    let (data, files, far) = (folder(), folder(), CardServer::start(&[]).await);
    let entry = |name: &str| format!("  - name: {name}\n    url: {}/?token=abc\n", far.url);
    std::fs::write(files.path().join("agents.yaml"), format!("agents:\n{}", entry("far"))).unwrap();
    let running = Running::of_workspace(data.path(), files.path(), |_| {}).await;
    let named = FirstServed { name: "far".to_owned(), url: format!("{}/?…", far.url) };
    assert_eq!(running.registry.take_first_served(), [named]);
    std::fs::write(files.path().join("agents.yaml"), format!("agents:\n{}{}", entry("far"), entry("later"))).unwrap();
    running.reload_now.notify_one();
    // The journal is written once the change was noted.
    assert_eq!(running.topics("hub.agent.added.%23", 1).await, ["hub.agent.added.later"]);
    assert_eq!(running.registry.take_first_served(), [], "nobody takes them, so they are not gathered for ever");
    running.stop().await;
}
