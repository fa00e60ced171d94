//! What the card of a remote agent promises is so here too: its extensions are active when a caller declares them, the
//! media types of its skills count, and each of its extensions is named once.

use serde_json::{Value, json};

use super::script::{Asked, Reply, Scripted, card, task};
use crate::running::{Running, folder};

const OPTIONAL: &str = "urn:x:opt";

fn offering(extensions: &Value) -> Value {
    let mut card = card(false);
    card["capabilities"]["extensions"] = extensions.clone();
    card
}

fn completes(asked: &Asked, _: usize) -> Reply {
    match asked.method() {
        "SendMessage" => Reply::Result(json!({ "task": task("TASK_STATE_COMPLETED", "m") })),
        _ => Reply::Error(-32601),
    }
}

/// A server whose agent `far` is this one, and whose card it has read.
async fn serving(data: &std::path::Path, files: &std::path::Path, remote: &Scripted) -> Running {
    super::far::write_agents(files, remote);
    let running = Running::of_workspace(data, files, |_| {}).await;
    let (status, shown) = running.ask("POST /api/agents/far:refresh", "ann", &[], "").await;
    assert_eq!(status, 200, "{shown}");
    running
}

fn message(parts: &Value, metadata: &Value) -> String {
    let message = json!({ "messageId": "m", "role": "ROLE_USER", "parts": parts, "metadata": metadata });
    json!({ "message": message, "configuration": { "returnImmediately": true } }).to_string()
}

#[tokio::test]
async fn an_optional_extension_that_a_caller_declares_is_declared_at_the_agent_too() {
    let (data, files) = (folder(), folder());
    let offered = json!([{ "uri": OPTIONAL }, { "uri": "urn:x:other" }]);
    let remote = Scripted::with_card(offering(&offered), completes).await;
    let running = serving(data.path(), files.path(), &remote).await;
    let told = async |headers: &[&str]| {
        running.send_with("ann", "far", json!({ "parts": [{ "text": "go" }] }), headers).await;
        remote.calls("SendMessage").last().unwrap().header("a2a-extensions").map(str::to_owned)
    };
    assert_eq!(told(&["A2A-Extensions: urn:x:opt, urn:x:unknown"]).await.as_deref(), Some(OPTIONAL));
    assert_eq!(told(&["X-A2A-Extensions: urn:x:opt"]).await.as_deref(), Some(OPTIONAL), "as older callers have it");
    assert_eq!(told(&[]).await, None, "who declares none gets none");
    running.stop().await;
}

#[tokio::test]
async fn a_message_that_is_sent_again_after_a_restart_declares_the_same_extensions() {
    let (data, files) = (folder(), folder());
    let offered = json!([{ "uri": OPTIONAL }, { "uri": switchboard_a2a::extension::IDEMPOTENCY }]);
    let remote = Scripted::with_card(offering(&offered), |asked, before| match before {
        0 => Reply::Stalls,
        _ => completes(asked, before),
    })
    .await;
    let running = serving(data.path(), files.path(), &remote).await;
    let body = message(&json!([{ "text": "go" }]), &json!({}));
    let headers = ["A2A-Extensions: urn:x:opt"];
    assert_eq!(running.ask("POST /a2a/far/message:send", "ann", &headers, &body).await.0, 200);
    remote.called("SendMessage", 1).await;
    running.stop().await;

    let running = serving(data.path(), files.path(), &remote).await;
    remote.called("SendMessage", 2).await;
    let sent = remote.calls("SendMessage");
    let [first, again] = [&sent[0], &sent[1]].map(|sent| (sent.header("a2a-extensions"), &sent.body["params"]));
    assert_eq!(first, again);
    assert!(first.0.is_some_and(|declared| declared.contains(OPTIONAL)), "{first:?}");
    running.stop().await;
}

#[tokio::test]
async fn a_waiting_task_is_looked_at_with_what_the_agent_requires() {
    let (data, files) = (folder(), folder());
    let offered = json!([{ "uri": "urn:x:needed", "required": true }]);
    let remote = Scripted::with_card(offering(&offered), |asked, _| match asked.method() {
        "SendMessage" => Reply::Result(json!({ "task": task("TASK_STATE_INPUT_REQUIRED", "m") })),
        _ => Reply::Result(task("TASK_STATE_INPUT_REQUIRED", "m")),
    })
    .await;
    let running = serving(data.path(), files.path(), &remote).await;
    let asked = running
        .send_with("ann", "far", json!({ "parts": [{ "text": "go" }] }), &["A2A-Extensions: urn:x:needed"])
        .await;
    assert_eq!(asked["status"]["state"], "TASK_STATE_INPUT_REQUIRED", "{asked}");
    super::world::passing(&running.clock, std::time::Duration::from_secs(1), remote.called("GetTask", 1)).await;
    assert_eq!(remote.calls("GetTask")[0].header("a2a-extensions"), Some("urn:x:needed"));
    running.stop().await;
}

#[tokio::test]
async fn a_picture_for_a_skill_that_reads_pictures_is_not_refused() {
    let (data, files) = (folder(), folder());
    let mut shown = card(false);
    let provider = json!({ "organization": "Far Inc", "url": "https://far.example" });
    (shown["provider"], shown["iconUrl"]) = (provider.clone(), "https://far.example/icon.png".into());
    shown["documentationUrl"] = "https://far.example/docs".into();
    let skill = |id: &str| json!({ "id": id, "name": id, "description": "", "tags": [] });
    let mut ocr = skill("ocr");
    (ocr["inputModes"], ocr["outputModes"]) = (json!(["image/png"]), json!(["application/json"]));
    shown["skills"] = json!([ocr, skill("chat")]);
    let remote = Scripted::with_card(shown, completes).await;
    let running = serving(data.path(), files.path(), &remote).await;
    let send = async |media_type: &str, accepted: &[&str], metadata: Value| {
        let parts = json!([{ "raw": "iVBORw0KGgo=", "mediaType": media_type }]);
        let mut body: Value = serde_json::from_str(&message(&parts, &metadata)).unwrap();
        body["configuration"]["acceptedOutputModes"] = json!(accepted);
        running.ask("POST /a2a/far/message:send", "ann", &[], &body.to_string()).await
    };
    for (media_type, accepted, metadata, expected) in [
        ("image/png", &["application/json"][..], json!({ "skill": "ocr" }), 200),
        // The agent finds out which of its skills is meant.
        ("image/png", &[], json!({}), 200),
        ("text/plain", &["application/json"], json!({}), 200),
        ("image/png", &[], json!({ "skill": "chat" }), 400),
        ("text/plain", &["application/json"], json!({ "skill": "chat" }), 400),
        ("image/gif", &[], json!({ "skill": "ocr" }), 400),
        ("image/gif", &[], json!({}), 400),
    ] {
        let (status, answer) = send(media_type, accepted, metadata.clone()).await;
        assert_eq!(status, expected, "{media_type} {metadata}: {answer}");
    }
    let (_, refused) = send("image/gif", &[], json!({})).await;
    assert!(refused.to_string().contains("it reads text/plain, image/png"), "{refused}");
    let (_, card) = running.get("/a2a/far/.well-known/agent-card.json", "").await;
    assert_eq!(card["skills"][0]["inputModes"], json!(["image/png"]), "{card}");
    assert_eq!(card["skills"][0]["outputModes"], json!(["application/json"]), "{card}");
    assert_eq!((&card["provider"], &card["iconUrl"]), (&provider, &json!("https://far.example/icon.png")), "{card}");
    assert_eq!(card["documentationUrl"], "https://far.example/docs", "{card}");
    running.stop().await;
}

fn uris(card: &Value) -> Vec<&str> {
    let extensions = card["capabilities"]["extensions"].as_array();
    extensions.into_iter().flatten().filter_map(|extension| extension["uri"].as_str()).collect()
}

#[tokio::test]
async fn the_card_of_a_server_like_this_one_names_each_extension_once_also_where_it_leads_back_here() {
    let (data, files) = (folder(), folder());
    std::fs::write(files.path().join("agents.yaml"), "agents:\n  - name: echo\n    builtin: echo\n").unwrap();
    let running = Running::of_workspace(data.path(), files.path(), |_| {}).await;
    let entry = |name: &str, agent: &str| {
        let url = format!("http://{}/a2a/{agent}", running.address);
        format!("  - name: {name}\n    url: {url}\n    headers: {{ Authorization: Bearer ann }}\n")
    };
    let agents = ["agents:\n  - name: echo\n    builtin: echo\n".to_owned(), entry("near", "echo"), entry("me", "me")];
    std::fs::write(files.path().join("agents.yaml"), agents.concat()).unwrap();
    running.reload_now.notify_one();
    running.topics("hub.agent.added.%23", 2).await;
    let refreshed = async |name: &str| {
        let (status, shown) = running.ask(&format!("POST /api/agents/{name}:refresh"), "ann", &[], "").await;
        assert_eq!(status, 200, "{shown}");
        let (_, card) = running.get(&format!("/a2a/{name}/.well-known/agent-card.json"), "").await;
        card
    };
    let (_, direct) = running.get("/a2a/echo/.well-known/agent-card.json", "").await;
    assert_eq!(uris(&refreshed("near").await), uris(&direct));
    let (first, second) = (refreshed("me").await, refreshed("me").await);
    assert_eq!((uris(&first), first.to_string().len()), (uris(&direct), second.to_string().len()), "{second}");
    let changes = running.topics("hub.agent.card_changed.me", 1).await.len();
    refreshed("me").await;
    assert_eq!(running.topics("hub.agent.card_changed.me", 1).await.len(), changes, "nothing has changed since");
    running.stop().await;
}
