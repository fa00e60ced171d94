//! An agent of another server, served here because a file lists it.

use serde_json::Value;

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
