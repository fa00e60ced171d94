//! The check of agents: nothing is found against our own, and what it prints.

use std::process::{Command, Stdio};

use serde_json::Value;

use super::terminal::interrupt;
use super::{Fleet, something_else};
use crate::program::{Run, Workspace};

/// The names of checks that came to something.
fn that(run: &Run, outcome: &str) -> Vec<String> {
    let report = run.json();
    let findings = report["findings"].as_array().unwrap_or_else(|| panic!("{}{}", run.stdout, run.stderr));
    let found = findings.iter().filter(|finding| finding["outcome"] == outcome);
    found.map(|finding| finding["id"].as_str().unwrap().to_owned()).collect()
}

/// Checks measure times, in which a slow disk has no part here.
fn quick_fleet() -> Fleet {
    Fleet::of(Workspace::new().file("switchboard.yaml", "store: { durability: process }\n"))
}

#[track_caller]
fn assert_clean(run: &Run) {
    assert_eq!(that(run, "fail"), [""; 0], "{}", run.stdout);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let report = run.json();
    assert!(report["counts"]["pass"].as_u64().unwrap() >= 60, "{}", report["counts"]);
    assert_eq!(report["interfaces"].as_array().unwrap().len(), 4);
}

#[test]
fn nothing_is_found_against_our_own_agents() {
    let open = "webhooks: { allowedCidrs: [127.0.0.0/8] }\nstore: { durability: process }\n";
    let fleet = Fleet::of(Workspace::new().file("switchboard.yaml", open));
    for agent in ["echo", "guide", "probe"] {
        let run = fleet.run(&["check", agent, "--strict", "-o", "json"]);
        assert_clean(&run);
        let passed = that(&run, "pass");
        for id in ["list-order", "stream-closes", "version-old-callers", "push-round-trip", "push-delivered"]
            .into_iter()
            .chain(["push-not-waited-for", "push-unknown-config", "list-after", "error-status", "card-v03-agrees"])
            .chain(["version-minor", "version-malformed", "push-delete-result"])
        {
            assert!(passed.iter().any(|passed| passed == id), "{agent} {id}: {}", run.stdout);
        }
    }
    // What asks, refuses, fails, takes its time or says a lot is as good as anything.
    for (text, passes) in [
        ("ask", &["subscribe-open", "cancel-final", "cancel-ends-streams", "stream-final"][..]),
        ("auth", &["subscribe-open", "cancel-final"]),
        ("reject", &["get-task", "stream-matches-task"]),
        ("err", &["get-task", "stream-whole"]),
        ("panic", &["send-in-time"]),
        ("silent", &["send-in-time"]),
        ("stream:500", &["stream-whole", "stream-matches-task", "subscribe-resumes"]),
    ] {
        let run = fleet.run(&["conformance", "probe", "--text", text, "--strict", "-o", "json"]);
        assert_clean(&run);
        let passed = that(&run, "pass");
        for id in passes {
            assert!(passed.iter().any(|passed| passed == id), "{text} {id}: {}", run.stdout);
        }
    }
    // On a slow machine a task is over before it is listened to; then one that takes longer shows it.
    let wanted = ["stream-left", "subscribe-follows", "subscribe-twice", "subscribe-resumes", "cancel-final"];
    let is_seen = ["sleep:300", "sleep:3000"].into_iter().any(|text| {
        let run = fleet.run(&["conformance", "probe", "--text", text, "--strict", "-o", "json"]);
        assert_clean(&run);
        let passed = that(&run, "pass");
        wanted.iter().all(|id| passed.iter().any(|passed| passed == id))
    });
    assert!(is_seen, "not all of {wanted:?} passed");
    let message = fleet.run(&["check", "probe", "--text", "message", "-o", "json"]);
    assert_eq!((message.code, that(&message, "fail").len()), (Some(0), 0), "{}", message.stdout);
}

#[test]
fn nothing_is_left_at_work() {
    let fleet = quick_fleet();
    assert_eq!(fleet.run(&["check", "guide"]).code, Some(0));
    // One that works until it is canceled is never answered with.
    let hold =
        fleet.run(&["check", "probe", "--text", "hold", "--patience", "4s", "--only", "operations", "-o", "json"]);
    assert_eq!((hold.code, that(&hold, "fail")), (Some(0), vec!["send-in-time".to_owned()]), "{}", hold.stdout);
    assert_eq!(at_work(&fleet, "guide", "input-required"), 0);
    assert_eq!(at_work(&fleet, "probe", "working"), 0);
}

/// How many tasks of an agent are in a state.
fn at_work(fleet: &Fleet, agent: &str, state: &str) -> usize {
    let listed = fleet.run(&["task", "list", agent, "--status", state, "-o", "json"]);
    listed.json()["tasks"].as_array().unwrap().len()
}

#[test]
fn what_is_known_when_the_time_is_up_is_printed_and_nothing_is_left_at_work() {
    let fleet = quick_fleet();
    let run = fleet.run(&["check", "probe", "--text", "hold", "--patience", "60s", "--timeout", "8s", "-o", "json"]);
    assert_eq!((run.code, &run.json()["complete"]), (Some(5), &Value::from(false)), "{}{}", run.stdout, run.stderr);
    assert!(that(&run, "pass").contains(&"card-members".to_owned()), "{}", run.stdout);
    assert!(run.stderr.contains("--timeout"), "{}", run.stderr);
    assert_eq!(at_work(&fleet, "probe", "working"), 0);
}

#[test]
fn ctrl_c_prints_what_is_known_and_leaves_nothing_at_work() {
    let fleet = quick_fleet();
    let child = Command::new(env!("CARGO_BIN_EXE_switchboard"))
        .args(["check", "probe", "--text", "hold", "--patience", "60s"])
        .current_dir(fleet.workspace.path())
        .env_clear()
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    while at_work(&fleet, "probe", "working") == 0 {}
    interrupt(&child);
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert!(said.contains("pass  card-members") && said.ends_with("; not everything was checked\n"), "{said}");
    assert_eq!(at_work(&fleet, "probe", "working"), 0);
}

#[test]
fn with_keys_the_check_needs_one_and_never_shows_it() {
    let fleet = quick_fleet();
    let create = || fleet.run(&["keys", "create", "--json"]).json()["key"]["secret"].as_str().unwrap().to_owned();
    let (key, other) = (create(), create());
    for agent in ["echo", "guide", "probe"] {
        let run = fleet.run(&["check", agent, "--bearer", &key, "--other-api-key", &other, "--strict", "-o", "json"]);
        assert_clean(&run);
        let passed = that(&run, "pass");
        for id in ["card-security", "security-enforced", "security-challenge", "security-foreign-task"]
            .into_iter()
            .chain(["card-schemes", "card-extended", "card-extended-guarded", "security-other-webhooks"])
            .chain(["security-other-read", "security-other-list", "security-other-cancel"])
            .chain(["security-other-subscribe", "security-other-answer"])
        {
            assert!(passed.iter().any(|passed| passed == id), "{agent} {id}: {}", run.stdout);
        }
        assert!(!run.stdout.contains(&key) && !run.stdout.contains(&other));
    }
    let refused = fleet.run(&["check", "echo", "-o", "json"]);
    let code = &refused.json()["error"]["code"];
    assert_eq!((refused.code, code), (Some(4), &Value::from("A2ACLI_ERR_CREDENTIALS_MISSING")), "{}", refused.stdout);
    let outside = fleet.run(&["check", "echo", "--only", "card", "--only", "security", "-o", "json"]);
    assert_eq!((outside.code, that(&outside, "fail").len()), (Some(0), 0), "{}", outside.stdout);
}

#[test]
fn the_report_reads_like_this() {
    let fleet = quick_fleet();
    let file = fleet.workspace.path().join("report.xml");
    let run = fleet.run(&["check", "guide", "--junit", file.to_str().unwrap()]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    let expected = include_str!("conformance.txt");
    let found = fleet.stable(&run.stdout);
    assert_eq!(found, expected, "\n{found}");
    let xml = std::fs::read_to_string(file).unwrap();
    let suite = "<testsuite name=\"version\" tests=\"6\" failures=\"0\" skipped=\"0\">";
    assert!(xml.starts_with("<?xml") && xml.contains(suite) && xml.ends_with("</testsuites>\n"), "{xml}");
    let unwritable = fleet.run(&["check", "guide", "--only", "version", "--junit", "/no/such/folder/report.xml"]);
    assert!(unwritable.code == Some(1) && unwritable.stdout.contains("6 passed, 0 failed"), "{}", unwritable.stdout);
    assert!(unwritable.stderr.contains("/no/such/folder/report.xml cannot be written"), "{}", unwritable.stderr);
}

#[test]
fn faults_are_shown_with_what_to_do_and_what_is_no_agent_is_said_so() {
    let card = r#"{"name":"Half","description":"","version":"1","skills":[],"capabilities":{},"defaultInputModes":[],
        "defaultOutputModes":[],"supportedInterfaces":[{"url":"/","protocolBinding":"JSONRPC","protocolVersion":"1.0"}]}"#;
    let head = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length:";
    let half = something_else(Box::leak(format!("{head} {}\r\n\r\n{card}", card.len()).into_boxed_str()));
    let workspace = Workspace::new();
    let run = workspace.run(&["check", &half, "--only", "card"]);
    let fault = "  FAIL  card-members: not true that the card has every member that version 1.0 demands
        rule: A2A 1.0 §4.4.1 (must)
        sent: GET /.well-known/agent-card.json (A2A-Version: 1.0)
        seen: description is missing or empty
        fix:  write the missing members
";
    assert!(run.stdout.contains(fault), "{}{}", run.stdout, run.stderr);
    let summary = "\n3 passed, 6 failed (4 must, 1 should, 1 quality), 9 not applicable\n";
    assert!(run.code == Some(1) && run.stdout.ends_with(summary), "{}", run.stdout);

    assert_eq!(workspace.run(&["check", "http://127.0.0.1:1"]).code, Some(3));
    let nothing = something_else("HTTP/1.1 404 Not Found\r\nconnection: close\r\ncontent-length: 0\r\n\r\n");
    assert_eq!(workspace.run(&["check", &nothing]).code, Some(3));
    let huge = format!("{head} {}\r\n\r\n{{\"name\":\"{}", 9_000_000, "x".repeat(9_000_000));
    let moved = "HTTP/1.1 302 Found\r\nconnection: close\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n";
    for answer in [Box::leak(huge.into_boxed_str()), moved] {
        assert_eq!(workspace.run(&["check", &something_else(answer)]).code, Some(3));
    }
    let wrong = workspace.run(&["check", "x", "--only", "cards"]);
    assert!(wrong.code == Some(2) && wrong.stderr.contains("write one of card, operations"), "{}", wrong.stderr);
}
