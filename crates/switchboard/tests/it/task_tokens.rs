//! Programs of command-line agents that call other agents with `switchboard send`: what they are given for that, what
//! becomes of it, and what it does not open.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::http::{self, PATIENCE};
use crate::program::Workspace;
use crate::server::Server;
use crate::tls::Issued;

/// Sends to the agent that its message names, else answers. `walk` hands the rest of its words to the agent that the first
/// one names, `split` calls three times. `SWITCHBOARD` stands for the program under test.
const PROGRAM: &str = r#"
text="$* $(cat)"
case "$text" in
    *"walk "*)
        set -- ${text##*walk }
        to=$1; shift
        "SWITCHBOARD" send "$to" "${1:+walk }${*:-end}" 2>&1 </dev/null
        exit 0 ;;
    *split*)
        for number in 1 2 3; do "SWITCHBOARD" send bea "part $number" 2>&1 </dev/null; done
        exit 0 ;;
    *hub*)
        "SWITCHBOARD" dispatch --target helper "fold this" > dispatched.txt 2>&1 </dev/null
        echo "$?" > code
        "SWITCHBOARD" feed --server "$SWITCHBOARD_URL" > feed.txt 2>&1 </dev/null
        "SWITCHBOARD" send "$SWITCHBOARD_URL/a2a" "fold this" --metadata targets=helper -o json > answer.json 2> errors.txt </dev/null
        echo "asked"; exit 0 ;;
    *wait*)
        echo "$SWITCHBOARD_URL $SWITCHBOARD_TASK_TOKEN" > given.part; mv given.part given
        while [ ! -e end ]; do sleep 0.05; done
        exit 0 ;;
    *"call helper"*) to=helper ;;
    *"call other"*) to=other ;;
    *) echo "folded with ${SWITCHBOARD_TASK_TOKEN:-no token}"; exit 0 ;;
esac
"SWITCHBOARD" send "$to" "fold this" -o json > answer.json 2> errors.txt </dev/null
echo "$?" > code
echo "$SWITCHBOARD_URL $SWITCHBOARD_TASK_TOKEN" > given
echo "called"
"#;

const AGENTS: &str = r#"
agents:
  - { name: coder, cli: generic, command: [sh, PROGRAM], cwd: ./coder, delegates: [helper], repoLock: false }
  - { name: helper, cli: generic, command: [sh, PROGRAM], cwd: ./helper }
  - { name: other, cli: generic, command: [sh, PROGRAM], cwd: ./other }
"#;

/// Two that may call each other.
const PAIR: &str = r#"
agents:
  - { name: ann, cli: generic, command: [sh, PROGRAM], cwd: ./ann, delegates: [bea], repoLock: false }
  - { name: bea, cli: generic, command: [sh, PROGRAM], cwd: ./bea, delegates: [ann], repoLock: false }
"#;

fn workspace() -> Workspace {
    serving(AGENTS, &["coder", "helper", "other"])
}

fn serving(agents: &str, names: &[&str]) -> Workspace {
    let path = std::env::var("PATH").unwrap();
    let workspace = Workspace::new().file("program.sh", PROGRAM.replace("\"SWITCHBOARD\"", &binary()));
    let program = format!("{:?}", workspace.path().join("program.sh").display().to_string());
    for agent in names {
        std::fs::create_dir(workspace.path().join(agent)).unwrap();
    }
    let workspace = workspace.file("agents.yaml", agents.replace("PROGRAM", &program));
    workspace.variable("PATH", &path).variable("SWITCHBOARD_STORE_DURABILITY", "process")
}

fn binary() -> String {
    format!("{:?}", env!("CARGO_BIN_EXE_switchboard"))
}

/// What the program of `coder` has left.
fn left(workspace: &Workspace, file: &str) -> String {
    std::fs::read_to_string(workspace.path().join("coder").join(file)).unwrap().trim().to_owned()
}

fn task(answer: &Value) -> &Value {
    assert!(answer["task"].is_object(), "{answer}");
    &answer["task"]
}

#[test]
fn what_a_program_sends_is_a_child_of_its_task_and_its_token_ends_with_it() {
    let workspace = workspace();
    let server = Server::start(&workspace);
    let answer = server.message("coder", "send", "call helper", "").json();
    let parent = task(&answer);
    assert_eq!(parent["status"]["state"], "TASK_STATE_COMPLETED", "{answer}");
    assert_eq!(left(&workspace, "code"), "0", "{}", left(&workspace, "errors.txt"));
    let called: Value = serde_json::from_str(&left(&workspace, "answer.json")).unwrap();
    let child = task(&called);
    assert!(called.to_string().contains("folded with no token"), "an agent that calls nobody: {called}");

    let given = left(&workspace, "given");
    let (url, token) = given.split_once(' ').unwrap();
    assert!(url.ends_with(&server.address), "{url}");
    assert!(token.starts_with("swt_"), "{token}");
    let id = child["id"].as_str().unwrap();
    for path in [format!("/a2a/helper/tasks/{id}"), "/a2a/tasks".to_owned(), "/api/agents".to_owned()] {
        assert_eq!(server.get(&path, token).status, 401, "{path}: the turn is over");
    }
    assert_eq!(server.message("helper", "send", "late", token).status, 401);
    let seen = server.get(&format!("/a2a/helper/tasks/{id}"), "");
    assert_eq!(seen.status, 404, "it belongs to the agent, not to the caller");
}

#[test]
fn a_program_is_told_which_agents_it_may_not_call() {
    let workspace = workspace();
    let server = Server::start(&workspace);
    let answer = server.message("coder", "send", "call other", "").json();
    assert_eq!(task(&answer)["status"]["state"], "TASK_STATE_COMPLETED", "the program goes on: {answer}");
    assert_ne!(left(&workspace, "code"), "0");
    let listed = server.get("/a2a/other/tasks", "").json();
    assert_eq!(listed["totalSize"], 0, "nothing was begun: {listed}");
}

/// What an agent answers.
fn said(server: &Server, agent: &str, text: &str) -> String {
    let answer = server.message(agent, "send", text, "").json();
    assert_eq!(task(&answer)["status"]["state"], "TASK_STATE_COMPLETED", "{answer}");
    task(&answer)["artifacts"].to_string()
}

#[test]
fn programs_that_call_each_other_without_end_are_refused_and_the_hub_counts_it() {
    let workspace = serving(PAIR, &["ann", "bea"]);
    let server = Server::start(&workspace);
    let walked = said(&server, "ann", "walk bea ann bea");
    assert!(walked.contains("folded with swt_"), "an agent may be asked back: {walked}");
    let looped = said(&server, "ann", "walk bea ann bea ann");
    assert!(looped.contains("agent ann is in the chain 2 times, and may be 2 times"), "{looped}");
    assert!(looped.contains("the chain is ann → bea → ann → bea → ann"), "{looped}");
    server.stop();
    let server = Server::start(&workspace);
    let path = "/api/feed?from=oldest&topic=dispatch.dropped.*";
    let feed = http::request(&server.address, "GET", path, &[("Accept", "application/json")], "").text();
    assert!(feed.contains(r#""topic":"dispatch.dropped.hops""#), "{feed}");
    assert!(feed.contains(r#""key":"ann""#) && feed.contains("is in the chain 2 times"), "{feed}");
}

#[test]
fn programs_call_as_deep_and_as_often_as_they_may() {
    let settings = "delegation: { maxDepth: 3, maxChildren: 2 }\n";
    let workspace = serving(PAIR, &["ann", "bea"]).file("switchboard.yaml", settings);
    let server = Server::start(&workspace);
    let deep = said(&server, "ann", "walk bea ann bea");
    assert!(deep.contains("agent bea would be task 4 of a chain of at most 3 (delegation.maxDepth)"), "{deep}");
    let split = said(&server, "ann", "split");
    assert!(split.contains("a task starts at most 2 tasks (delegation.maxChildren)"), "{split}");
    assert!(split.contains("folded with swt_"), "{split}");
}

#[test]
fn the_hub_is_not_open_to_a_program_with_whatever_key_is_at_hand() {
    let workspace = workspace().file("switchboard.yaml", "server: { defaultAgent: helper }\n");
    let server = Server::start(&workspace);
    said(&server, "coder", "hub");
    let told = left(&workspace, "dispatched.txt");
    assert_ne!(left(&workspace, "code"), "0", "{told}");
    for told in [told, left(&workspace, "feed.txt")] {
        assert!(told.contains("whose token opens agents and not the API of the hub"), "{told}");
        assert!(told.contains("switchboard send NAME TEXT"), "{told}");
    }
    let answer = left(&workspace, "answer.json");
    let routed: Value = serde_json::from_str(&answer).unwrap_or_else(|_| panic!("{}", left(&workspace, "errors.txt")));
    assert_eq!(task(&routed)["metadata"]["switchboard/routing"]["agent"], "helper", "{routed}");
    let tasks = server.get("/api/tasks", "").json();
    assert_eq!(tasks["items"].as_array().unwrap().len(), 2, "a task and its child: {tasks}");
}

#[test]
fn programs_reach_a_server_with_its_own_certificate_and_behind_a_proxy() {
    let issued = Issued::new();
    let settings = "server:\n  tls: { cert: tls/cert.pem, key: tls/key.pem }\n";
    let workspace = workspace().file("switchboard.yaml", settings);
    let workspace = workspace.file("tls/cert.pem", &issued.certificate_pem).file("tls/key.pem", &issued.key_pem);
    let server = Server::start(&workspace);
    let sent = workspace.run(&["send", "coder", "call helper"]);
    assert_eq!(sent.code, Some(0), "{}", sent.stderr);
    assert_eq!(left(&workspace, "code"), "0", "{}", left(&workspace, "errors.txt"));
    assert!(left(&workspace, "given").starts_with("https://"));
    server.stop();

    let workspace = self::workspace().file("switchboard.yaml", "server: { publicBaseUrl: https://agents.example }\n");
    let server = Server::start(&workspace);
    said(&server, "coder", "call helper");
    assert_eq!(left(&workspace, "code"), "0", "{}", left(&workspace, "errors.txt"));
    let given = left(&workspace, "given");
    assert!(given.starts_with(&format!("http://{} ", server.address)), "the token stays on this machine: {given}");
}

#[test]
fn a_token_opens_nothing_but_the_agents_it_may_call_while_its_run_goes_on() {
    let workspace = workspace();
    let server = Server::start(&workspace);
    let foreign = task(&server.message("helper", "send", "fold", "").json())["id"].as_str().unwrap().to_owned();
    let body = json!({
        "message": { "messageId": "m1", "role": "ROLE_USER", "parts": [{ "text": "wait" }] },
        "configuration": { "returnImmediately": true },
    });
    let begun = server.post("/a2a/coder/message:send", "", &body.to_string()).json();
    let parent = task(&begun)["id"].as_str().unwrap().to_owned();
    let (file, began) = (workspace.path().join("coder/given"), Instant::now());
    while !file.exists() {
        assert!(began.elapsed() < PATIENCE, "the program does not begin");
        std::thread::sleep(Duration::from_millis(20));
    }
    let given = left(&workspace, "given");
    let (_, token) = given.split_once(' ').unwrap();
    assert_eq!(server.message("helper", "send", "fold", token).status, 200, "it is good");

    let described = server.get("/openapi.json", "").json();
    let mut tried = 0;
    for (path, methods) in described["paths"].as_object().unwrap() {
        if !path.starts_with("/api") && path != "/publish" {
            continue;
        }
        let mut filled = path.clone();
        while let (Some(begin), Some(end)) = (filled.find('{'), filled.find('}')) {
            filled.replace_range(begin..=end, &parent);
        }
        for method in methods.as_object().unwrap().keys() {
            let method = method.to_uppercase();
            if !["GET", "POST", "PUT", "PATCH", "DELETE"].contains(&method.as_str()) {
                continue;
            }
            let bearer = format!("Bearer {token}");
            let headers = [("A2A-Version", "1.0"), ("Authorization", bearer.as_str())];
            let body = if method == "GET" || method == "DELETE" { "" } else { "{}" };
            let answer = http::request(&server.address, &method, &filled, &headers, body);
            let status = answer.status;
            // The agent that a channel has called reads its mailbox; this one was called by nobody.
            let refused = if path.starts_with("/api/mailbox/") { 404 } else { 401 };
            assert_eq!(status, refused, "{method} {path}: {}", answer.text());
            tried += 1;
        }
    }
    assert!(tried > 30, "only {tried} were described");

    let webhook = json!({ "url": "http://127.0.0.1:1/hook" }).to_string();
    for (agent, id) in [("helper", &foreign), ("helper", &parent), ("coder", &parent)] {
        let path = format!("/a2a/{agent}/tasks/{id}");
        let denied = |answer: http::Answer| {
            let status = answer.status;
            assert!(matches!(status, 403 | 404), "{path}: {status} {}", answer.text());
        };
        denied(server.get(&path, token));
        denied(server.get(&format!("{path}:subscribe"), token));
        denied(server.post(&format!("{path}:cancel"), token, "{}"));
        denied(server.get(&format!("{path}/pushNotificationConfigs"), token));
        denied(server.post(&format!("{path}/pushNotificationConfigs"), token, &webhook));
    }
    for agent in ["other", "coder"] {
        assert_eq!(server.message(agent, "send", "fold", token).status, 403, "{agent}");
    }
    std::fs::write(workspace.path().join("coder/end"), "").unwrap();
    let state = || server.get(&format!("/a2a/coder/tasks/{parent}"), "").json()["status"]["state"].clone();
    while state() != "TASK_STATE_COMPLETED" {
        assert!(began.elapsed() < PATIENCE, "the program does not end: {}", state());
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(server.message("helper", "send", "fold", token).status, 401);
}
