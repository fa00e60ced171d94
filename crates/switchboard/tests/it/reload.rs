//! A running server reads its configuration again: by command and by signal, and only if it is good.

use std::time::Instant;

use serde_json::{Value, json};

use crate::http::PATIENCE;
use crate::program::Workspace;
use crate::receiver::Receiver;
use crate::server::Server;

const ALLOWED: &str = "webhooks:\n  allowedCidrs: [127.0.0.1/32]\n";

fn write(workspace: &Workspace, content: &str) {
    std::fs::write(workspace.path().join("switchboard.yaml"), content).unwrap();
}

/// Whether a message may name this receiver; says why not.
fn refusal(server: &Server, receiver: &Receiver) -> Option<String> {
    let answer = server.send_with("echo", "hello", &receiver.config());
    (answer.status != 200).then(|| answer.text())
}

#[test]
fn a_command_applies_who_may_be_called_and_names_the_rest() {
    let (workspace, receiver) = (Workspace::new(), Receiver::start());
    let server = Server::start(&workspace);
    let told = refusal(&server, &receiver).unwrap();
    assert!(told.contains("webhooks.allowedHosts") && told.contains("webhooks.allowedCidrs"), "{told}");
    let run = workspace.run(&["config", "reload"]);
    assert_eq!(run.stdout, "read again; nothing has changed that can be applied while the server runs\n");

    let agents = "agents:\n  - { name: echo, builtin: echo, description: Another }\n";
    let workspace = workspace.file("agents.yaml", agents);
    write(&workspace, &format!("{ALLOWED}  perTask: 7\nlog: {{ level: debug }}\n"));
    let run = workspace.run(&["config", "reload"]);
    let restart = "changed, and in force after a restart: webhooks.perTask, log.level";
    assert_eq!(run.stdout, format!("in force: webhooks.allowedCidrs\n{restart}\n"), "{}", run.stderr);
    assert_eq!(refusal(&server, &receiver), None);
    receiver.heard("TASK_STATE_COMPLETED");

    write(&workspace, "webhooks: { nameservers: [127.0.0.1:5353] }\n");
    let reloaded = workspace.run(&["config", "reload", "-o", "json"]).json();
    let applied = json!(["webhooks.allowedCidrs", "webhooks.nameservers"]);
    assert_eq!(reloaded, json!({ "applied": applied, "needsRestart": [], "warnings": [] }));
    assert!(refusal(&server, &receiver).is_some());
    server.stop();
    let run = workspace.run(&["config", "reload"]);
    assert!(run.code == Some(1) && run.stderr.contains("no server runs on the data directory"), "{}", run.stderr);
}

#[test]
fn a_command_applies_rules_of_routing() {
    let agents = "agents:\n  - { name: guide, builtin: guide }\n  - { name: echo, builtin: echo }\n";
    let workspace = Workspace::new().file("agents.yaml", agents);
    let server = Server::start(&workspace);
    write(&workspace, "hub: { routing: { keywords: [{ match: ship it, agent: echo }] }, roles: { helm: echo } }\n");
    let reloaded = workspace.run(&["config", "reload", "-o", "json"]).json();
    let applied = json!(["hub.roles.helm", "hub.routing.keywords"]);
    assert_eq!(reloaded, json!({ "applied": applied, "needsRestart": [], "warnings": [] }));
    server.stop();
}

#[test]
fn a_configuration_with_problems_changes_nothing() {
    let (workspace, receiver) = (Workspace::new().file("switchboard.yaml", ALLOWED), Receiver::start());
    let server = Server::start(&workspace);
    write(&workspace, "webhooks:\n  allowedHosts: [http://hooks]\n  parallel: 0\n");
    let problem = "switchboard.yaml:2: webhooks.allowedHosts: \"http://hooks\" is not a host";
    let run = workspace.run(&["config", "reload"]);
    assert!(run.code == Some(1) && run.stderr.contains(problem), "{}", run.stderr);
    // From elsewhere the command finds nothing wrong, and the server does.
    let elsewhere = Workspace::new();
    let data_dir = workspace.path().join(".switchboard");
    let run = elsewhere.run(&["config", "reload", "--data-dir", data_dir.to_str().unwrap()]);
    assert!(run.code == Some(1) && run.stderr.contains(problem), "{}", run.stderr);
    assert!(run.stderr.contains("webhooks.parallel: 0 leaves room for nothing"), "{}", run.stderr);
    assert!(
        run.stderr.ends_with("next: nothing has changed; fix what is named above and run it again\n"),
        "{}",
        run.stderr
    );
    assert_eq!(refusal(&server, &receiver), None);
    server.stop();
}

#[test]
fn agents_of_the_environment_that_cannot_be_read_are_logged_and_the_files_count() {
    let workspace = Workspace::new()
        .file("agents.yaml", "agents: [{ name: here, builtin: echo }]\n")
        .variable("PROTOLABS_AGENTS_JSON", "{ \"agents\": [{ \"name\": \"far\" }] }");
    let server = Server::start_after(&workspace, "true");
    let shown = server.get("/api/agents", "").json();
    let names: Vec<&Value> = shown["items"].as_array().unwrap().iter().map(|agent| &agent["name"]).collect();
    assert_eq!(names, [&json!("here")], "{shown}");
    let log = std::fs::read_to_string(workspace.path().join("stderr.txt")).unwrap();
    let line = log.lines().find(|line| line.contains("the files count instead")).unwrap_or_default();
    assert!(line.starts_with("warning: ") && line.contains("PROTOLABS_AGENTS_JSON"), "{log}");
    server.stop();
}

#[test]
fn a_signal_does_the_same_and_the_log_says_so() {
    let (workspace, receiver) = (Workspace::new(), Receiver::start());
    let server = Server::start_after(&workspace, "true");
    let logged = |text: &str| {
        let began = Instant::now();
        loop {
            let log = std::fs::read_to_string(workspace.path().join("stderr.txt")).unwrap();
            if log.contains(text) {
                return log;
            }
            assert!(began.elapsed() < PATIENCE, "no {text:?} in {log}");
        }
    };
    write(&workspace, "webhooks: { allowedHosts: [a b] }\n");
    server.signal("HUP");
    let log = logged("nothing has changed because it has problems");
    assert!(log.contains("switchboard.yaml:1: webhooks.allowedHosts: \"a b\" is not a host"), "{log}");
    assert!(refusal(&server, &receiver).is_some());
    write(&workspace, ALLOWED);
    server.signal("HUP");
    let log = logged("the configuration was read again applied=");
    assert!(log.contains("webhooks.allowedCidrs"), "{log}");
    assert_eq!(refusal(&server, &receiver), None);
    server.stop();
}

#[test]
fn hosts_and_networks_of_the_environment_are_added() {
    let workspace = Workspace::new()
        .file("switchboard.yaml", "webhooks: { allowedHosts: [hooks.internal] }\n")
        .variable("PUSH_NOTIFICATION_ALLOWED_HOSTS", "*.corp, http://wrong other:8080")
        .variable("PUSH_NOTIFICATION_ALLOWED_CIDRS", "10.0.0.0/8,127.0.0.1 10.0.0.0/40");
    let run = workspace.good();
    let from_file = json!({ "from": "file", "file": "switchboard.yaml", "line": 1 });
    assert_eq!(run.setting("webhooks.allowedHosts"), (json!(["hooks.internal", "*.corp", "other:8080"]), from_file));
    let from_variable = json!({ "from": "environment", "variable": "PUSH_NOTIFICATION_ALLOWED_CIDRS" });
    assert_eq!(run.setting("webhooks.allowedCidrs"), (json!(["10.0.0.0/8", "127.0.0.1/32"]), from_variable));
    let warnings = [
        "PUSH_NOTIFICATION_ALLOWED_HOSTS: \"http://wrong\" is not a host and is left out: write a host such as hooks.internal, hooks.internal:8080 or *.internal, without http://",
        "PUSH_NOTIFICATION_ALLOWED_CIDRS: \"10.0.0.0/40\" is not a network and is left out: write an address and the length of its prefix, such as 10.0.0.0/8 or fd00::/8, or one address, such as 10.0.0.1",
    ];
    assert_eq!(run.json()["warnings"], json!(warnings));

    let receiver = Receiver::start();
    let server = Server::start_after(&workspace, "true");
    assert_eq!(refusal(&server, &receiver), None);
    receiver.heard("TASK_STATE_COMPLETED");
    server.stop();
    let said = std::fs::read_to_string(workspace.path().join("stderr.txt")).unwrap();
    for warning in warnings {
        assert!(said.contains(&format!("warning: {warning}")), "{said}");
    }
}
