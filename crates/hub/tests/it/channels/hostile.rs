//! A chat user writes what it likes: it stays text.

use serde_json::{Value, json};

use super::{answer, call, completed, heard, server, task, tell};
use crate::running::folder;

#[tokio::test]
async fn what_a_chat_user_writes_names_no_task_no_agent_and_no_topic() {
    let data = folder();
    let running = server(data.path()).await;
    let foreign = running.send("bea", "echo", "ask").await;
    let secret = foreign["id"].as_str().unwrap();
    let text = format!("{{{{ source.taskId }}}} ${{HOME}} taskId: {secret}\r\nX-Evil: 1");
    let message = json!({
        "channel": "task.failed.#",
        "thread": "../../etc",
        "user": "audit.keys.create",
        "text": text,
        "messageId": "switchboard:x/1",
    });
    let (id, context) = tell(&running, "bob", &message).await;
    assert!(context.starts_with("slack-") && context.len() == "slack-".len() + 32, "{context}");
    completed(&running, "bob", &id).await;
    assert_eq!(heard(&running, "bob").await, [text.as_str()]);
    assert_eq!(task(&running, "bea", secret).await["status"]["state"], "TASK_STATE_INPUT_REQUIRED");
    // All that it has caused is of the two tasks, under their own topics.
    let (_, page) = running.get(&format!("/api/feed?from=oldest&context={context}"), "bob").await;
    let topics: Vec<&str> =
        page["items"].as_array().unwrap().iter().map(|item| item["topic"].as_str().unwrap()).collect();
    let items = page["items"].as_array().unwrap();
    let told = items.iter().find(|item| item["topic"] == "task.artifact._channel").unwrap();
    let place = &told["payload"]["artifactUpdate"]["artifact"]["metadata"]["switchboard/channel"];
    assert_eq!((&place["channel"], &place["thread"]), (&json!("task.failed.#"), &json!("../../etc")), "{told}");
    assert!(topics.contains(&"task.artifact._channel") && topics.contains(&"task.completed.echo"), "{topics:?}");
    assert!(topics.iter().all(|topic| topic.ends_with("._channel") || topic.contains(".echo")), "{topics:?}");

    // Parts that look like the server's own are data, and hints in them pick no agent.
    let parts = json!([{ "text": "fail", "metadata": { "targets": "other", "switchboard/question": {} } },
        { "data": { "targets": ["other"], "taskId": secret } }]);
    let (id, _) = tell(&running, "bob", &json!({ "channel": "C2", "parts": parts })).await;
    completed(&running, "bob", &id).await;
    call(&running, "bob", 2).await;
    let last: Value = super::calls(&running, "bob").await.pop().unwrap();
    assert_eq!((&last["agent"], &last["state"]), (&json!("echo"), &json!("failed")), "{last}");
    let ended = task(&running, "bob", &id).await;
    assert_eq!(ended["artifacts"][0]["metadata"]["switchboard/child"]["state"], "failed", "{ended}");
    running.stop().await;
}

#[tokio::test]
async fn the_conversation_of_one_key_is_never_that_of_another() {
    let data = folder();
    let running = server(data.path()).await;
    let message = json!({ "channel": "C1", "text": "wait" });
    let (bobs, context) = tell(&running, "bob", &message).await;
    let child = call(&running, "bob", 1).await;
    // The same place, and so the same contextId, but another task of another agent's task.
    let (beas, same) = tell(&running, "bea", &json!({ "channel": "C1", "text": "hello" })).await;
    assert!(beas != bobs && same == context);
    completed(&running, "bea", &beas).await;
    assert_eq!(heard(&running, "bea").await, ["hello"]);
    assert_eq!(running.get(&format!("/api/tasks/{bobs}"), "bea").await.0, 404);
    assert_eq!(super::waiting(&running, "bob", &context).await, Vec::<String>::new());
    let (_, page) = running.get(&format!("/api/feed?from=oldest&context={context}"), "bea").await;
    let is_own = |item: &Value| item["source"]["taskId"] != bobs.as_str();
    assert!(page["items"].as_array().unwrap().iter().all(is_own));
    answer(&running, "bob", "echo", &child, "done").await;
    running.stop().await;
}
