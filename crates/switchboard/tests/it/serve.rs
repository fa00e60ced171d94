//! `switchboard serve`, from its first line to its end.

use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::http;
use crate::program::Workspace;
use crate::server::{Server, timed};

/// Runs a printed line as a person would; without curl on this machine, does the same request.
fn run(line: &str) -> String {
    let words = words(line);
    assert_eq!(words[0], "curl", "{line}");
    if let Ok(output) = Command::new("curl").args(&words[1..]).output() {
        assert!(output.status.success(), "{line}: {output:?}");
        return String::from_utf8(output.stdout).unwrap();
    }
    let after = |flag: &str| words.iter().position(|word| word == flag).map(|place| words[place + 1].as_str());
    let (address, path) = words[2].strip_prefix("http://").unwrap().split_once('/').unwrap();
    let (name, value) = after("-H").unwrap().split_once(": ").unwrap();
    http::request(address, "POST", &format!("/{path}"), &[(name, value)], after("-d").unwrap()).text()
}

/// The words of a shell line with single quotes.
pub(crate) fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for letter in line.chars() {
        match letter {
            '\'' => quoted = !quoted,
            ' ' if !quoted => words.push(String::new()),
            other => words.last_mut().unwrap().push(other),
        }
    }
    words
}

#[test]
fn says_what_it_serves_and_the_printed_lines_work() {
    let workspace = Workspace::new();
    let server = Server::start(&workspace);
    let greeting = server.greeting.join("\n");
    for agent in ["echo", "guide", "probe"] {
        let path = format!("/a2a/{agent}/.well-known/agent-card.json");
        assert!(greeting.contains(&format!("http://{}{path}", server.address)), "{greeting}");
        let card = server.get(&path, "").json();
        assert!(card["name"].as_str().unwrap().eq_ignore_ascii_case(agent), "{card}");
    }
    let data_dir = workspace.path().canonicalize().unwrap().join(".switchboard");
    assert!(greeting.contains(data_dir.to_str().unwrap()) && greeting.contains("durability full"), "{greeting}");
    assert_eq!(server.get("/healthz", "").status, 200);
    assert_eq!(server.get("/readyz", "").status, 200);

    let sent = run(server.line_under("send a message:"));
    assert!(sent.contains("TASK_STATE_COMPLETED") && sent.contains("hello"), "{sent}");
    let streamed = run(server.line_under("stream one:"));
    assert!(streamed.contains("chunk 3") && streamed.contains("TASK_STATE_COMPLETED"), "{streamed}");
    assert!(streamed.lines().filter(|line| line.starts_with("data: ")).count() >= 5, "{streamed}");
    server.stop();
}

#[test]
fn an_agent_elsewhere_is_named_by_the_first_start_that_serves_it() {
    let entry = |name: &str, more: &str| format!("  - {{ name: {name}, url: 'http://127.0.0.1:9/{name}'{more} }}\n");
    let agents = ["agents:\n", &entry("far", ""), &entry("mine", ", serve: false")].concat();
    let workspace = Workspace::new().file("agents.yaml", &agents);
    let named = |server: &Server| {
        let lines = server.greeting.iter().skip_while(|line| !line.starts_with("served here for the first time"));
        let rows = lines.skip(1).take_while(|line| !line.is_empty());
        rows.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect::<Vec<_>>()
    };
    let server = Server::start(&workspace);
    assert_eq!(named(&server), ["far http://127.0.0.1:9/far"], "{:?}", server.greeting);
    server.stop();
    let server = Server::start(&workspace);
    assert_eq!(named(&server), [""; 0], "it is known by now");
    server.stop();
    let agents = ["agents:\n", &entry("far", ""), &entry("mine", "")].concat();
    let workspace = workspace.file("agents.yaml", &agents);
    let server = Server::start(&workspace);
    assert_eq!(named(&server), ["mine http://127.0.0.1:9/mine"]);
    server.stop();
}

#[test]
fn json_output_says_the_same_to_programs() {
    let agents = "agents: [{ name: parrot, builtin: echo, description: Repeats }]";
    let workspace = Workspace::new().file("agents.yaml", agents);
    let mut child = Command::new(env!("CARGO_BIN_EXE_switchboard"))
        .args(["serve", "-o", "json", "--bind", "127.0.0.1:0"])
        .current_dir(workspace.path())
        .env_clear()
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut document = serde_json::Deserializer::from_reader(child.stdout.take().unwrap()).into_iter::<Value>();
    let greeting = document.next().unwrap().unwrap();
    assert!(greeting["rootCard"].as_str().unwrap().ends_with("/.well-known/agent-card.json"), "{greeting}");
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(greeting["agents"][0]["name"], "parrot");
    assert_eq!(greeting["agents"][0]["description"], "Repeats");
    assert_eq!((&greeting["keysRequired"], &greeting["durability"]), (&false.into(), &"full".into()));
}

#[test]
fn ctrl_c_lets_a_running_task_end_and_a_restart_remembers_it() {
    let workspace = Workspace::new();
    let server = Server::start(&workspace);
    let mut stream = server.message("probe", "stream", "sleep:300", "");
    let seen = stream.until("TASK_STATE_WORKING");
    let id = seen.split(r#""taskId":""#).nth(1).unwrap().split('"').next().unwrap().to_owned();
    server.signal("INT");
    let rest = stream.whole_text();
    assert!(rest.contains("TASK_STATE_COMPLETED") && !rest.contains("retry:"), "its reader sees the end: {rest}");
    let (said, status) = server.ended();
    assert_eq!(status.code(), Some(0));
    assert!(said[0].starts_with("stopping") && said.last().unwrap() == "stopped", "{said:?}");

    let again = Server::start(&workspace);
    let task = again.get(&format!("/a2a/probe/tasks/{id}"), "").json();
    assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED", "{task}");
    again.stop();
}

#[test]
fn sigterm_ends_a_server_whose_task_does_not_within_the_drain_time() {
    let shutdown = |drain: &str| {
        let settings = format!("tasks: {{ drain: {drain} }}\nstore: {{ durability: process }}\n");
        let workspace = Workspace::new().file("switchboard.yaml", &settings);
        let server = Server::start(&workspace);
        let mut stream = server.message("probe", "stream", "hold", "");
        stream.until("TASK_STATE_WORKING");
        server.signal("TERM");
        let ((_, status), took) = timed(|| server.ended());
        assert!(stream.whole_text().ends_with("retry: 1000\n\n"), "its reader is asked to come back");
        assert_eq!(status.code(), Some(0));
        took
    };
    let (short, long) = std::thread::scope(|scope| {
        // Longer than the default, which an ignored setting would leave.
        let long = scope.spawn(|| shutdown("11s"));
        (shutdown("100ms"), long.join().unwrap())
    });
    assert!(short < long && long >= Duration::from_secs(11), "{short:?} {long:?}");
}

#[test]
fn a_second_ctrl_c_ends_it_at_once() {
    let workspace = Workspace::new().file("switchboard.yaml", "tasks: { drain: 1h }");
    let mut server = Server::start(&workspace);
    server.message("probe", "stream", "hold", "").until("TASK_STATE_WORKING");
    server.signal("INT");
    assert!(server.says().starts_with("stopping"));
    server.signal("INT");
    let ((_, status), took) = timed(|| server.ended());
    assert_eq!(status.code(), Some(130));
    assert!(took < http::PATIENCE, "without the second it would wait for an hour: {took:?}");
}

#[test]
fn takes_all_the_open_files_it_may_have_and_says_if_they_are_too_few() {
    let workspace = Workspace::new().file("switchboard.yaml", "limits: { connections: 300, remoteTasks: 100 }\n");
    let complaints = || std::fs::read_to_string(workspace.path().join("stderr.txt")).unwrap();
    let enough = Server::start_after(&workspace, "ulimit -S -n 200 && ulimit -H -n 1488");
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", enough.pid()));
    // Only Linux shows them; elsewhere the missing warning says it too.
    if let Ok(limits) = limits {
        let line = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
        assert_eq!(line.split_whitespace().skip(3).take(2).collect::<Vec<_>>(), ["1488", "1488"], "{line}");
    }
    assert!(!complaints().contains("open files"), "{}", complaints());
    enough.stop();
    let too_few = Server::start_after(&workspace, "ulimit -S -n 200 && ulimit -H -n 1487");
    let told = complaints();
    assert!(told.contains("1487 open files") && told.contains("limits.remoteTasks (100) needs 1488"), "{told}");
    too_few.stop();
}

#[test]
fn agents_without_a_default_have_no_root_card() {
    let agents = "agents: [{ name: a, builtin: echo }, { name: b, builtin: echo }]";
    let workspace = Workspace::new().file("agents.yaml", agents);
    let server = Server::start(&workspace);
    let card = server.get("/.well-known/agent-card.json", "");
    assert_eq!(card.status, 404);
    assert_eq!(card.json()["error"]["message"], "no agent is the default here; name one: a, b");
    assert_eq!(server.get("/a2a/b/.well-known/agent-card.json", "").status, 200);
    server.stop();
}
