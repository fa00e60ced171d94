//! What goes wrong has an exit code, a word for programs and a next step, the same whatever is asked.

use std::net::TcpListener;

use serde_json::{Value, json};

use super::{Fleet, answering, card, something_else};
use crate::program::{Run, Workspace};

#[track_caller]
fn failed(run: &Run, exit: i32, code: &str) -> Value {
    assert_eq!(run.code, Some(exit), "{}{}", run.stdout, run.stderr);
    assert_eq!(run.stderr, "", "programs read standard output");
    let error = run.json()["error"].clone();
    assert_eq!(error["code"], code, "{error}");
    assert!(!error["message"].as_str().unwrap().is_empty());
    error
}

#[test]
fn an_address_without_a_server_is_3() {
    let workspace = Workspace::new();
    let url = format!("http://{}", super::free_address());
    for command in [&["card"][..], &["skills"], &["send"], &["task", "list"]] {
        let mut arguments = [command, &["-a", &url, "--json"]].concat();
        if command == ["send"] {
            arguments.push("hi");
        }
        failed(&workspace.run(&arguments), 3, "A2ACLI_ERR_UNREACHABLE");
    }
    let text = workspace.run(&["send", &url, "hi"]);
    assert_eq!((text.code, text.stdout.as_str()), (Some(3), ""));
    assert!(text.stderr.starts_with("error: ") && text.stderr.contains("\nnext: check the address"), "{}", text.stderr);
    let empty = something_else("HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    failed(&workspace.run(&["card", &empty, "--json"]), 3, "A2ACLI_ERR_CARD_NOT_FOUND");
}

#[test]
fn headers_of_the_connection_cannot_be_written_and_secrets_may_begin_with_a_dash() {
    let workspace = Workspace::new();
    let free = format!("http://{}", super::free_address());
    for flag in [["--header", "Content-Length: 20"], ["--api-key-header", "Transfer-Encoding"]] {
        let run = workspace.run(&["send", &free, "hi", flag[0], flag[1], "--json"]);
        let error = failed(&run, 2, "A2ACLI_ERR_USAGE");
        assert!(error["message"].as_str().unwrap().contains("for the connection to say"), "{error}");
    }
    let run = workspace.run(&["send", &free, "hi", "--bearer", "-hunter2", "--json"]);
    failed(&run, 3, "A2ACLI_ERR_UNREACHABLE");
    assert!(!run.stdout.contains("hunter2"), "{}", run.stdout);
}

#[test]
fn a_web_page_is_told_as_one() {
    let page = "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 36\r\nconnection: close\r\n\r\n<html><title>Sign in</title></html>\n";
    let address = something_else(page);
    let error = failed(&Workspace::new().run(&["send", &address, "hi", "--json"]), 3, "A2ACLI_ERR_CARD_NOT_FOUND");
    assert!(error["message"].as_str().unwrap().contains("a web page (HTML): \"Sign in\""), "{error}");
}

#[test]
fn credentials_that_are_missing_or_wrong_are_4() {
    let fleet = Fleet::new();
    let key = fleet.run(&["keys", "create", "--json"]).json()["key"]["secret"].as_str().unwrap().to_owned();
    let error = failed(&fleet.run(&["send", "echo", "hi", "--json"]), 4, "A2ACLI_ERR_CREDENTIALS_MISSING");
    assert!(error["hint"].as_str().unwrap().contains("switchboard keys create"), "{error}");
    let wrong = fleet.run(&["send", "echo", "hi", "--bearer", "hunter2", "--json"]);
    failed(&wrong, 4, "A2ACLI_ERR_AUTH_FAILED");
    assert!(!wrong.stdout.contains("hunter2"), "{}", wrong.stdout);
    for flag in [["--bearer", &key], ["--api-key", &key], ["--header", &format!("X-API-Key: {key}")]] {
        assert_eq!(fleet.run(&["send", "echo", "hi", "-q", flag[0], flag[1]]).stdout, "hi\n", "{}", flag[0]);
    }
    let closed = something_else("HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    failed(&fleet.run(&["card", &closed, "--json"]), 4, "A2ACLI_ERR_CREDENTIALS_MISSING");
    let Fleet { workspace, server } = fleet;
    let fleet = Fleet { workspace: workspace.variable("A2ACLI_API_KEY", &key), server };
    assert_eq!(fleet.run(&["send", "echo", "hi", "-q"]).stdout, "hi\n");
    let Fleet { workspace, server } = fleet;
    let fleet = Fleet { workspace: workspace.variable("A2ACLI_API_KEY", "hunter2"), server };
    let error = failed(&fleet.run(&["send", "echo", "hi", "--json"]), 4, "A2ACLI_ERR_AUTH_FAILED");
    assert!(error["hint"].as_str().unwrap().contains("good into A2ACLI_API_KEY"), "it says which: {error}");
}

#[test]
fn time_that_is_up_is_5_and_the_task_is_named() {
    let fleet = Fleet::of(Workspace::new().file("switchboard.yaml", "store: { durability: process }\n"));
    let run = fleet.run(&["send", "probe", "hold", "--timeout", "5s", "--json"]);
    let error = failed(&run, 5, "A2ACLI_ERR_TIMEOUT");
    let hint = error["hint"].as_str().unwrap();
    assert_eq!(fleet.stable(hint), "switchboard task get probe --wait ID1");
    let task = fleet.run(&["task", "get", "probe", hint.rsplit(' ').next().unwrap(), "--json"]);
    assert_eq!(task.json()["status"]["state"], "TASK_STATE_WORKING");
    // The listener neither replies nor closes the connection.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    failed(&fleet.run(&["card", &url, "--timeout", "200ms", "--json"]), 5, "A2ACLI_ERR_TIMEOUT");
}

#[test]
fn what_is_typed_wrongly_is_2_in_the_form_that_was_asked_for() {
    let workspace = Workspace::new();
    for arguments in [
        &["send", "--json"][..],
        &["send", "echo", "--json"],
        &["task", "get", "echo", "--json"],
        &["task", "get", "echo", "1", "--timeout", "soon", "--json"],
        &["card", "http://agent.example", "--transport", "pigeon", "-o", "json"],
        &["send", "http://agent.example", "hi", "--header", "no colon", "--json"],
        &["send", "http://agent.example", "hi", "--data", "{no json", "--json"],
        &["send", "http://agent.example", "--file", "not-there.txt", "--json"],
        &["send", "http://agent.example", "hi", "--async", "--stream", "--json"],
        &["send", "ftp://agent.example", "hi", "--json"],
        &["task", "--output=json", "gett"],
    ] {
        let error = failed(&workspace.run(arguments), 2, "A2ACLI_ERR_USAGE");
        assert_eq!(error["a2aCode"], Value::Null, "{arguments:?}");
    }
    let secret = workspace.run(&["send", "http://agent.example", "hi", "--header", "X\u{e4}: hunter2"]);
    assert!(secret.code == Some(2) && !secret.stderr.contains("hunter2"), "{}", secret.stderr);
}

#[test]
fn what_the_protocol_has_a_name_for_is_called_by_it() {
    let fleet = Fleet::new();
    for binding in ["jsonrpc", "http+json"] {
        let run = fleet.run(&["task", "get", "echo", "nothing-of-that-name", "--json", "--transport", binding]);
        let error = failed(&run, 1, "TaskNotFoundError");
        let next = format!("switchboard task list --transport {binding} echo");
        assert_eq!((&error["a2aCode"], &error["hint"]), (&json!(-32001), &json!(next)));
    }
    let done = fleet.run(&["send", "echo", "hi", "--json"]).json()["task"]["id"].as_str().unwrap().to_owned();
    failed(&fleet.run(&["task", "cancel", "echo", &done, "--json"]), 1, "TaskNotCancelableError");
    let ended = fleet.run(&["send", "echo", "hi", "--task-id", &done, "--json"]);
    let error = failed(&ended, 1, "UnsupportedOperationError");
    assert!(error["hint"].as_str().unwrap().contains("--debug"), "{error}");
}

#[test]
fn what_was_typed_wrongly_is_said_without_its_secrets() {
    let workspace = Workspace::new();
    let agent = answering(|here, _| (200, card(here, json!({}))));
    for arguments in [
        &["send", "http://u:hunter2@127.0.0.1:1", "hi"][..],
        &["send", &agent, "hi", "--endpoint", "http://u:hunter2@127.0.0.1:1/x"],
    ] {
        for form in ["text", "json"] {
            let run = workspace.run(&[arguments, &["-o", form]].concat());
            let told = run.stdout + &run.stderr;
            assert!(run.code == Some(2) && told.contains("***@127.0.0.1"), "{told}");
            assert!(!told.contains("hunter2"), "{told}");
        }
    }
    let broken = Workspace::new().variable("A2ACLI_BEARER", "hunter2\r\n");
    let error = failed(&broken.run(&["send", "http://127.0.0.1:1", "hi", "--json"]), 2, "A2ACLI_ERR_USAGE");
    assert!(error["message"].as_str().unwrap().contains("A2ACLI_BEARER") && !error.to_string().contains("hunter2"));
    let remote = "agents: [{ name: there, url: 'http://127.0.0.1:1' }]\n";
    let listed = Workspace::new().file("agents.yaml", remote).run(&["agents"]);
    assert_eq!((listed.code, listed.stderr.as_str()), (Some(0), ""), "nothing is hosted here");
}

#[test]
fn a_card_that_has_moved_is_told_with_its_place() {
    let moved =
        "HTTP/1.1 301 Moved\r\nlocation: https://there.example/card\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    let run = Workspace::new().run(&["card", &something_else(moved), "--json"]);
    let error = failed(&run, 3, "A2ACLI_ERR_CARD_NOT_FOUND");
    assert!(error["hint"].as_str().unwrap().contains("moved to https://there.example/card: use that"), "{error}");
    let broken = "HTTP/1.1 500 Oops\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    failed(&Workspace::new().run(&["card", &something_else(broken), "--json"]), 3, "A2ACLI_ERR_CARD_NOT_FOUND");
    let json = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\nconnection: close\r\n\r\n[]";
    failed(&Workspace::new().run(&["card", &something_else(json), "--json"]), 1, "A2ACLI_ERR_CARD_INVALID");
}

#[test]
fn a_task_that_is_known_is_named_when_its_agent_is_lost_and_codes_are_the_agents_own() {
    let address = answering(|here, heard| {
        if heard.path.ends_with("agent-card.json") {
            return (200, card(here, json!({ "capabilities": { "streaming": false } })));
        }
        let asked: Value = serde_json::from_str(&heard.body).unwrap();
        if asked["method"] == "SendMessage" {
            let task = json!({ "id": "t1", "contextId": "c1", "status": { "state": "TASK_STATE_WORKING" } });
            return (200, json!({ "jsonrpc": "2.0", "id": asked["id"], "result": { "task": task } }));
        }
        (200, json!({ "jsonrpc": "2.0", "id": asked["id"], "error": { "code": -32099, "message": "broken" } }))
    });
    let asked = failed(&Workspace::new().run(&["task", "get", &address, "t1", "--json"]), 1, "InternalError");
    assert_eq!(asked["a2aCode"], -32099, "{asked}");
    let run = Workspace::new().run(&["send", &address, "hi", "--poll-interval", "10ms", "--json"]);
    assert_eq!(run.code, Some(1), "{}{}", run.stdout, run.stderr);
    let error = run.json()["error"].clone();
    assert!(error["message"].as_str().unwrap().contains("task t1"), "{error}");
    assert_eq!(error["hint"], format!("switchboard task get {address} t1"), "{error}");
}
