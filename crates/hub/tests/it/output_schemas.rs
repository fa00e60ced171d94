//! Results of skills with `outputSchema`: on the card, checked, asked for once more, and then refused.

use serde_json::{Value, json};

use crate::remote::script::{Reply, Scripted};
use crate::running::{Running, folder};

const AGENTS: &str = "agents:
  - name: counter
    builtin: echo
    skills: [{ name: count, description: Counts, outputSchema: schemas/count.json }, { name: talk, description: Talks }]
";

fn schema() -> Value {
    json!({ "type": "object", "properties": { "count": { "type": "integer", "minimum": 0 } }, "required": ["count"] })
}

fn workspace(schema: &str) -> tempfile::TempDir {
    let workspace = folder();
    std::fs::create_dir(workspace.path().join("schemas")).unwrap();
    std::fs::write(workspace.path().join("schemas/count.json"), schema).unwrap();
    std::fs::write(workspace.path().join("agents.yaml"), AGENTS).unwrap();
    workspace
}

async fn asked(running: &Running, skill: &str, text: &str) -> Value {
    let message = json!({ "parts": [{ "text": text }], "metadata": { "skill": skill } });
    running.send_with("bob", "counter", message, &[]).await
}

#[tokio::test]
async fn a_result_that_does_not_fit_its_schema_is_asked_for_once_more_and_then_fails() {
    let (data, workspace) = (folder(), workspace(&schema().to_string()));
    let running = Running::of_workspace(data.path(), workspace.path(), |_| {}).await;
    let (_, card) = running.get("/a2a/counter/.well-known/agent-card.json", "bob").await;
    let extensions = card["capabilities"]["extensions"].as_array().unwrap().iter();
    let declared = extensions.clone().find(|it| it["uri"] == "urn:switchboard:a2a:output-schema:v1").unwrap();
    assert_eq!(declared["params"]["skills"]["count"]["schema"], schema(), "{card}");
    assert_eq!(declared["params"]["skills"]["talk"], Value::Null);

    // A text that is JSON is the result, and callers get it as data.
    let done = asked(&running, "count", "```json\n{\"count\": 3}\n```").await;
    assert_eq!(done["status"]["state"], "TASK_STATE_COMPLETED", "{done}");
    let part = &done["artifacts"].as_array().unwrap().last().unwrap()["parts"][0];
    assert_eq!(part["data"], json!({ "count": 3 }), "{done}");
    assert_eq!(part["metadata"]["mimeType"], "application/vnd.protolabs.count+json");

    // The agent repeats what it is asked, so it does no better the second time.
    let failed = asked(&running, "count", "{\"count\": -1}").await;
    assert_eq!(failed["status"]["state"], "TASK_STATE_FAILED", "{failed}");
    let metadata = &failed["metadata"];
    let reasons = (&metadata["switchboard/reason"], &metadata["switchboard/reasonDetail"]);
    assert_eq!(reasons, (&json!("agent_error"), &json!("invalid_result")), "{failed}");
    let said = failed["status"]["message"]["parts"][0]["text"].as_str().unwrap();
    assert!(said.starts_with("the result does not fit its schema: "), "{said}");
    let history = failed["history"].as_array().unwrap();
    let repairs: Vec<&Value> =
        history.iter().filter(|message| message["metadata"]["switchboard/repair"] == json!(true)).collect();
    assert_eq!(repairs.len(), 1, "asked once: {failed}");
    let request = repairs[0]["parts"][0]["text"].as_str().unwrap();
    assert!(request.contains("/count") && request.contains("-1") && request.contains("\"minimum\":0"), "{request}");

    // A caller cannot spend the second try, and other skills answer as they like.
    let forged = json!({
        "parts": [{ "text": "no" }], "metadata": { "skill": "count", "switchboard/repair": true },
    });
    let failed = running.send_with("bob", "counter", forged, &[]).await;
    let history = failed["history"].as_array().unwrap();
    let is_repair = |message: &&Value| message["metadata"]["switchboard/repair"] == json!(true);
    assert_eq!(history.iter().filter(is_repair).count(), 1, "{failed}");
    assert_eq!(asked(&running, "talk", "no JSON").await["status"]["state"], "TASK_STATE_COMPLETED");
    running.stop().await;
}

/// A remote agent that has cost 0.5 for each of these answers, in one conversation.
async fn answering(answers: [&'static str; 2]) -> Scripted {
    Scripted::start(false, move |asked, before| {
        let usage = json!({ "inputTokens": 7, "outputTokens": 3, "costUsd": 0.5 });
        let answer = answers.get(before).copied().unwrap_or_default();
        match asked.method() {
            "SendMessage" => Reply::Result(json!({ "task": {
                "id": format!("r{before}"), "contextId": "rc", "status": { "state": "TASK_STATE_COMPLETED" },
                "artifacts": [{ "artifactId": "a", "parts": [{ "text": answer }] }],
                "metadata": { "switchboard/usage": usage },
            } })),
            _ => Reply::Error(-32601),
        }
    })
    .await
}

#[tokio::test]
async fn a_remote_agent_is_asked_for_its_result_once_more_in_its_conversation() {
    for (second, state, detail) in [
        ("{\"count\": 3}", "TASK_STATE_COMPLETED", Value::Null),
        ("{\"count\": -2}", "TASK_STATE_FAILED", json!("invalid_result")),
    ] {
        let remote = answering(["{\"count\": -1}", second]).await;
        let (data, workspace) = (folder(), workspace(&schema().to_string()));
        let agents = AGENTS.replace("builtin: echo", &format!("url: {}", remote.url()));
        std::fs::write(workspace.path().join("agents.yaml"), agents).unwrap();
        let running = Running::of_workspace(data.path(), workspace.path(), |_| {}).await;
        let ended = asked(&running, "count", "how many?").await;
        assert_eq!(ended["status"]["state"], state, "{ended}");
        assert_eq!(ended["metadata"]["switchboard/reasonDetail"], detail, "{ended}");
        let sent = remote.calls("SendMessage");
        assert_eq!(sent.len(), 2, "once more, and no more than that");
        let [first, again] = [0, 1].map(|number| &sent[number].body["params"]["message"]);
        assert_eq!((&first["contextId"], &again["contextId"]), (&Value::Null, &json!("rc")), "in its conversation");
        assert_eq!(again["taskId"], Value::Null, "the task there has ended");
        assert_eq!(again["metadata"]["skill"], "count");
        let request = again["parts"][0]["text"].as_str().unwrap();
        assert!(request.contains("-1") && request.contains("\"minimum\":0"), "{request}");
        let names: Vec<&Value> = ended["artifacts"].as_array().unwrap().iter().map(|made| &made["name"]).collect();
        assert_eq!(names.contains(&&json!("structured-result")), detail.is_null(), "{ended}");
        // Both tries have been paid for.
        assert_eq!(ended["metadata"]["switchboard/usage"]["costUsd"], 1.0, "{ended}");
        running.stop().await;
    }
}

#[tokio::test]
async fn a_bad_schema_is_a_problem_of_its_file_and_key() {
    use switchboard_fleet::config::agent_files::AgentFiles;
    for (schema, says) in [("{", "is no JSON Schema"), ("{\"type\": \"number of things\"}", "is no JSON Schema")] {
        let workspace = workspace(schema);
        let listing = AgentFiles::new(workspace.path().to_owned(), Default::default()).read().unwrap();
        let problem = listing.problems.first().unwrap();
        assert!(problem.key.ends_with("skills[0].outputSchema"), "{problem}");
        assert!(problem.wrong.contains(says) && problem.wrong.contains("schemas/count.json"), "{problem}");
    }
    let workspace = workspace("{}");
    std::fs::remove_file(workspace.path().join("schemas/count.json")).unwrap();
    let listing = AgentFiles::new(workspace.path().to_owned(), Default::default()).read().unwrap();
    assert!(listing.problems[0].wrong.contains("cannot be read"), "{:?}", listing.problems);
    // What may register agents may not read files of the server.
    let item = json!({
        "name": "far", "url": "http://localhost/a2a",
        "skills": [{ "name": "count", "description": "Counts", "outputSchema": "/etc/passwd" }],
    });
    let refused = switchboard_fleet::config::agent_files::read_item("body", &item.to_string()).unwrap_err();
    assert!(refused[0].key.ends_with("outputSchema") && !refused[0].wrong.contains("passwd"), "{refused:?}");
}
