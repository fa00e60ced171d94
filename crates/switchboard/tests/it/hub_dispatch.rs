//! `switchboard dispatch`: a message to the agent that routing picks, or to several.

use serde_json::json;

use crate::program::Workspace;
use crate::server::Server;

#[test]
fn a_message_finds_its_agent_or_several() {
    let settings = "server: { defaultAgent: echo }\n";
    let workspace = Workspace::new().file("switchboard.yaml", settings);
    let server = Server::start(&workspace);

    let answered = workspace.run(&["dispatch", "to", "whom", "it", "concerns"]);
    assert_eq!(answered.code, Some(0), "{}", answered.stderr);
    assert!(answered.stdout.starts_with("artifact: echo\ntext:\n  to whom it concerns\n"), "{}", answered.stdout);
    assert!(answered.stdout.ends_with("state: completed\n"), "{}", answered.stdout);
    let by_skill = workspace.run(&["dispatch", "--skill", "hello", "hello", "-o", "json"]).json();
    assert_eq!(by_skill["metadata"]["switchboard/routing"]["agent"], "probe", "{by_skill}");
    let said = workspace.run(&["dispatch", "--skill", "hello", "hello"]).stderr;
    assert_eq!(said, "routed to probe by skill\n");
    let both = workspace.run(&["dispatch", "--target", "echo", "--target", "probe", "--fanout", "all", "hello"]);
    assert!(both.stdout.contains("artifact: probe\n") && both.stdout.contains("artifact: echo\n"), "{}", both.stdout);
    let from_input = workspace.run_with(&["dispatch", "--target", "echo", "-"], "from a pipe");
    assert!(from_input.stdout.contains("  from a pipe\n"), "{}", from_input.stdout);

    let failed = workspace.run(&["dispatch", "--target", "probe", "err", "--fail"]);
    assert!(failed.code == Some(1) && failed.stderr.contains("warning: the task has failed"), "{}", failed.stderr);
    let wrong = workspace.run(&["dispatch", "--target", "ecko", "hi"]);
    assert!(wrong.code == Some(1) && wrong.stderr.contains("next: switchboard agents list"), "{}", wrong.stderr);
    assert_eq!(workspace.run(&["dispatch"]).code, Some(2), "there is nothing to send");
    drop(server);
}

#[test]
fn fan_outs_keep_to_the_limits_of_the_settings() {
    let agents = "agents: [{ name: a, builtin: echo }, { name: b, builtin: echo }, { name: c, builtin: echo }]\n";
    let settings = "hub: { fanout: { max: 2, inline: 1KiB } }\n";
    let workspace = Workspace::new().file("agents.yaml", agents).file("switchboard.yaml", settings);
    let server = Server::start(&workspace);
    let answered = |targets: serde_json::Value, text: &str| {
        let message = json!({
            "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": text }], "metadata": { "targets": targets },
        });
        server.post("/message:send", "", &json!({ "message": message }).to_string())
    };
    let sent = |targets: serde_json::Value, text: &str| answered(targets, text).json()["task"].clone();
    let texts = |task: &serde_json::Value| {
        let artifacts = task["artifacts"].as_array().unwrap().iter();
        artifacts.map(|artifact| artifact["parts"][0]["text"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let short = sent(json!(["a", "b"]), "hello");
    assert_eq!(short["status"]["state"], "TASK_STATE_COMPLETED", "{short}");
    assert_eq!(texts(&short), ["hello", "hello"]);
    let long = sent(json!(["a", "b"]), &"x".repeat(1_100));
    assert_eq!(long["status"]["state"], "TASK_STATE_COMPLETED", "{long}");
    for text in texts(&long) {
        assert!(text.contains("bytes: read task ") && text.len() < 200, "over hub.fanout.inline it is named: {text}");
    }
    let wide = answered(json!(["a", "b", "c"]), "hello");
    let (status, refusal) = (wide.status, wide.json());
    assert_eq!(status, 400, "{refusal}");
    let said = refusal["error"]["message"].as_str().unwrap();
    assert!(said.contains("targets") && said.contains("3 agents are more than hub.fanout.max (2)"), "{refusal}");
    server.stop();
}

#[test]
fn a_task_that_asks_is_answered_and_one_that_takes_long_is_left_to_itself() {
    let workspace = Workspace::new();
    let server = Server::start(&workspace);
    let asked = workspace.run(&["dispatch", "--target", "probe", "ask"]);
    let next = asked.stderr.lines().last().unwrap().strip_prefix("next: switchboard ").unwrap();
    let words: Vec<&str> = next.split_whitespace().take_while(|word| !word.starts_with('\'')).chain(["blue"]).collect();
    let answered = workspace.run(&words);
    assert!(answered.code == Some(0) && answered.stdout.contains("blue"), "{}{}", answered.stdout, answered.stderr);

    let begun = workspace.run(&["dispatch", "--target", "probe", "hold", "--wait", "0s"]);
    let task = begun.stdout.lines().next().unwrap().strip_prefix("task: ").unwrap();
    assert!(begun.stderr.contains(&format!("/a2a {task} --wait\n")), "{}", begun.stderr);
    let stopped = workspace.run(&["task", "cancel", task, "-o", "json"]).json();
    assert_eq!(stopped, json!({ "id": task, "state": "canceled" }));
    drop(server);
}
