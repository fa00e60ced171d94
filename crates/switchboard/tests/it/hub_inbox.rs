//! `switchboard inbox`: what waits for an answer, and the decisions.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::http::PATIENCE;
use crate::program::Workspace;
use crate::server::Server;

#[test]
fn a_question_is_found_in_the_inbox_shown_and_answered() {
    let workspace = Workspace::new().file("agents.yaml", "agents: [{ name: probe, builtin: probe }]\n");
    let server = Server::start(&workspace);
    let run = |arguments: &[&str]| workspace.run(&[&["inbox"], arguments].concat());
    assert_eq!(run(&[]).stdout, "nothing waits for an answer\n");
    assert_eq!(run(&["list", "--decided"]).stdout, "nothing was decided\n");
    workspace.run(&["send", "probe", "ask"]);
    let listed = run(&[]);
    let rows: Vec<Vec<&str>> = listed.stdout.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0].join(" "), "ASKED KIND STAGE AGENT ID QUESTION", "{}", listed.stderr);
    assert_eq!((rows.len(), rows[1][1..4].join(" ")), (2, "question caller probe".to_owned()));
    let id = rows[1][4];
    let shown = run(&["show", id]);
    assert!(shown.code == Some(0) && shown.stdout.contains("\nWhat shall I repeat?\n"), "{}", shown.stdout);

    // What does not fit leaves it open.
    let wrong = run(&["approve", id, "--always"]);
    assert!(wrong.code == Some(1) && wrong.stderr.contains("always"), "{}", wrong.stderr);
    assert_eq!(run(&["answer", id]).code, Some(2));
    let unknown = run(&["approve", "none.1"]);
    assert!(unknown.code == Some(1) && unknown.stderr.contains("inbox list"), "{}", unknown.stderr);

    let answered = run(&["answer", id, "--text", "hello", "--feedback", "as agreed"]);
    let task = id.rsplit_once('.').unwrap().0;
    assert_eq!(answered.stdout, format!("decided; task {task} goes on\n"), "{}", answered.stderr);
    let late = run(&["reject", id]);
    assert!(late.code == Some(1) && late.stderr.contains("local has decided it already"), "{}", late.stderr);
    let task = workspace.run(&["task", "get", "probe", task]);
    assert!(task.stdout.contains("you said: hello"), "{}{}", task.stdout, task.stderr);
    let decided = run(&["list", "--decided", "-o", "json"]).json();
    let is = &decided["questions"][0]["decided"];
    assert_eq!([&is["by"], &is["decision"], &is["text"]], [&json!("local"), &json!("answer"), &json!("hello")]);
    let shown = run(&["show", id]).stdout;
    assert!(shown.contains("answer at ") && shown.contains("local"), "{shown}");
    // The gauges follow the log.
    for series in [
        "switchboard_inbox_decisions_total{decision=\"answer\",via=\"api\"} 1",
        "switchboard_inbox_wait_seconds_count 1",
        "switchboard_inbox_open{stage=\"caller\"} 0",
    ] {
        let begin = Instant::now();
        while !server.get("/metrics", "").text().lines().any(|line| line == series) {
            assert!(begin.elapsed() < PATIENCE, "{series}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    drop(server);
}
