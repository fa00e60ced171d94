//! `switchboard feed`: what happened, and what happens, over lost connections.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::program::Workspace;
use crate::server::Server;

/// A `feed --follow` that runs; ended with the test.
struct Follower {
    child: Child,
    /// None once nobody reads any more.
    lines: Option<BufReader<ChildStdout>>,
}

impl Follower {
    fn start(workspace: &Workspace, arguments: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_switchboard"))
            .args([&["feed", "--follow", "-o", "json"], arguments].concat())
            .current_dir(workspace.path())
            .env_clear()
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = child.stdout.take().map(BufReader::new);
        Self { child, lines }
    }

    fn next(&mut self) -> Value {
        let mut line = String::new();
        self.lines.as_mut().unwrap().read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    /// The next item of a topic.
    fn until(&mut self, topic: &str) -> Value {
        loop {
            let item = self.next();
            if item["topic"] == topic {
                return item;
            }
        }
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn the_feed_is_read_filtered_and_gone_on_with() {
    let workspace = Workspace::new();
    let server = Server::start(&workspace);
    let task = server.message("echo", "send", "first", "").json()["task"]["id"].as_str().unwrap().to_owned();
    server.message("probe", "send", "err", "");

    let all = workspace.run(&["feed", "-o", "json"]);
    let items: Vec<Value> = all.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let topics: Vec<&str> = items.iter().map(|item| item["topic"].as_str().unwrap()).collect();
    assert!(topics.contains(&"task.completed.echo") && topics.contains(&"task.failed.probe"), "{topics:?}");

    let of_task = workspace.run(&["feed", "--task", &task]).stdout;
    assert!(of_task.lines().count() >= 3 && of_task.lines().all(|line| line.contains(&task)), "{of_task}");
    assert!(of_task.contains("task.received.echo") && of_task.contains("  first\n"), "{of_task}");
    let some = workspace.run(&["feed", "--topic", "outcome.#", "--agent", "probe"]).stdout;
    assert!(some.lines().count() == 1 && some.contains("outcome.probe.-") && some.contains("failed after"), "{some}");
    let last = items.last().unwrap()["id"].as_str().unwrap();
    assert_eq!(workspace.run(&["feed", "--from", last]).stdout, "", "nothing came after it");
    let wrong = workspace.run(&["feed", "--from", "yesterday"]);
    assert!(wrong.code == Some(1) && wrong.stderr.contains("now, oldest, or the id of an item"), "{}", wrong.stderr);
}

#[test]
fn a_follower_goes_on_after_the_server_has_restarted_elsewhere() {
    let workspace = Workspace::new();
    let server = Server::start(&workspace);
    server.message("echo", "send", "before", "");
    let mut follower = Follower::start(&workspace, &["--from", "oldest", "--topic", "task.completed.*"]);
    let before = follower.next();
    assert_eq!(before["topic"], "task.completed.echo");
    server.stop();
    let server = Server::start(&workspace);
    let task = server.message("echo", "send", "after", "").json()["task"]["id"].clone();
    let after = follower.next();
    assert_eq!((&after["topic"], &after["source"]["taskId"]), (&json!("task.completed.echo"), &task));
    server.stop();
}

#[test]
fn a_follower_ends_with_its_key() {
    let workspace = Workspace::new();
    let created = workspace.run(&["keys", "create", "--role", "viewer", "-o", "json"]).json();
    let (id, key) = (created["key"]["id"].as_str().unwrap(), created["key"]["secret"].as_str().unwrap());
    let server = Server::start(&workspace);
    let mut follower = Follower::start(&workspace, &["--from", "oldest", "--bearer", key]);
    server.message("echo", "send", "hi", key);
    follower.until("task.completed.echo");
    assert_eq!(workspace.run(&["keys", "revoke", id]).code, Some(0));
    let error = loop {
        let line = follower.next();
        if line.get("error").is_some() {
            break line;
        }
    };
    assert_eq!(error["error"]["code"], "A2ACLI_ERR_AUTH_FAILED", "{error}");
    assert_eq!(follower.child.wait().unwrap().code(), Some(4));
}

#[test]
fn nothing_is_printed_twice_if_a_connection_breaks_between_two_items_of_one_event() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = format!("http://{}", listener.local_addr().unwrap());
    let item = |id: &str, topic: &str| format!("event: {topic}\ndata: {}\n\n", json!({ "id": id, "topic": topic }));
    let workspace = Workspace::new();
    let mut follower = Follower::start(&workspace, &["--from", "1.0.0.0", "--server", &server]);

    // The id comes with the last item of an event, and here the connection ends before it.
    let first = [format!("id: 1.0.1.1\n{}", item("1.0.1.1", "a")), item("1.0.2.1", "b")].concat();
    assert!(answer(&listener, &first).contains("from=1.0.0.0"));
    let second = [item("1.0.2.1", "b"), format!("id: 1.0.2.1\n{}", item("1.0.2.1", "c"))].concat();
    assert!(answer(&listener, &second).contains("from=1.0.1.1"), "it goes on after the last id");
    assert!(answer(&listener, &format!("id: 1.0.3.1\n{}", item("1.0.3.1", "d"))).contains("from=1.0.2.1"));
    let topics: Vec<Value> = (0..4).map(|_| follower.next()["topic"].clone()).collect();
    assert_eq!(topics, ["a", "b", "c", "d"]);
}

/// Answers the next request with a stream that ends; the first line of the request.
fn answer(listener: &TcpListener, events: &str) -> String {
    let (mut stream, _): (TcpStream, _) = listener.accept().unwrap();
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap() == 1 {
        head.push(byte[0]);
    }
    let response = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    stream.write_all(format!("{response}{events}").as_bytes()).unwrap();
    String::from_utf8(head).unwrap().lines().next().unwrap().to_owned()
}

#[test]
fn a_follower_whose_output_nobody_reads_any_more_ends() {
    let workspace = Workspace::new();
    let server = Server::start(&workspace);
    let mut follower = Follower::start(&workspace, &["--from", "oldest"]);
    server.message("echo", "send", "one", "");
    follower.until("task.completed.echo");
    follower.lines = None;
    // The next item cannot be written.
    server.message("echo", "send", "two", "");
    assert_eq!(follower.child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_brief_feed_follows_without_contents() {
    let workspace = Workspace::new();
    let server = Server::start(&workspace);
    let task = server.message("echo", "send", "one", "").json()["task"]["id"].clone();
    let mut follower = Follower::start(&workspace, &["--from", "oldest", "--brief"]);
    loop {
        let item = follower.next();
        assert_eq!((&item["payload"], &item["source"]["taskId"]), (&Value::Null, &task), "{item}");
        if item["topic"] == "outcome.echo.-" {
            break;
        }
    }
    let alone = workspace.run(&["feed", "--brief"]);
    assert!(alone.code == Some(2) && alone.stderr.contains("--follow"), "{}", alone.stderr);
    server.stop();
}
