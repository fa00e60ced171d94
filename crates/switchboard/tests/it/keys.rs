//! `switchboard keys`: on the running server at once, and on the file where none runs.

use serde_json::{Value, json};

use crate::http::Answer;
use crate::program::Workspace;
use crate::server::Server;

/// A stream that looked at its caller's key only when it has something to send would send a ping before it ends.
const PING: &str = ": ping";

fn create(workspace: &Workspace, arguments: &[&str]) -> (String, String, Value) {
    let created = workspace.run(&[&["keys", "create", "-o", "json"], arguments].concat()).json();
    let text = |name: &str| created["key"][name].as_str().unwrap().to_owned();
    (text("id"), text("secret"), created.clone())
}

fn hold(server: &Server, key: &str) -> Answer {
    let mut stream = server.message("probe", "stream", "hold", key);
    stream.until("TASK_STATE_WORKING");
    stream
}

#[test]
fn the_first_key_closes_an_open_server_at_once() {
    let workspace = Workspace::new();
    let server = Server::start(&workspace);
    let stream = hold(&server, "");
    assert_eq!(workspace.run(&["status", "-o", "json"]).json()["keysRequired"], false);
    let (run, blocked) = std::thread::scope(|scope| {
        let blocked = scope.spawn(|| {
            let answer = server.message("probe", "send", "hold", "");
            (answer.status, answer.text())
        });
        let working = || server.get("/a2a/probe/tasks?status=TASK_STATE_WORKING", "").json()["totalSize"].clone();
        while working() != 2 {}
        (workspace.run(&["keys", "create"]), blocked.join().unwrap())
    });
    assert!(blocked.0 == 401 && blocked.1.contains("a key is needed"), "the blocked sender is told: {blocked:?}");
    assert!(run.stdout.contains("from now on the running server refuses every request without one"), "{}", run.stdout);
    let key = run.stdout.lines().next().unwrap().split_whitespace().nth(1).unwrap();
    assert!(!stream.whole_text().contains(PING), "what is open without a key ends at once");
    assert_eq!(workspace.run(&["status", "-o", "json"]).json()["keysRequired"], true);

    let refused = server.message("echo", "send", "hi", "");
    assert_eq!(refused.status, 401);
    assert!(refused.text().contains("a key is needed"));
    assert_eq!(server.message("echo", "send", "hi", key).status, 200);
    assert_eq!(server.get("/healthz", "").status, 200);
    server.signal("TERM");
}

#[test]
fn a_revoked_key_ends_its_streams_and_opens_nothing() {
    let workspace = Workspace::new();
    let (other, other_key, _) = create(&workspace, &[]);
    let server = Server::start(&workspace);
    let (id, key, created) = create(&workspace, &["--name", "ci", "--agents", "echo,probe"]);
    assert_eq!(created["inForce"], true);
    assert_eq!(created["key"]["scopes"], json!({ "agents": { "only": ["echo", "probe"] }, "role": "none" }));
    assert_eq!(server.message("guide", "send", "hi", &key).status, 403, "not among its agents");
    let kept = hold(&server, &other_key);
    let ended = hold(&server, &key);

    let run = workspace.run(&["keys", "revoke", &id]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), format!("{id} is revoked\n").as_str()));
    assert!(!ended.text().contains(PING));
    assert_eq!(server.message("echo", "send", "hi", &key).status, 401);
    assert_eq!(server.message("echo", "send", "hi", &other_key).status, 200, "another key is not touched");
    let list = workspace.run(&["keys", "list", "-o", "json"]).json();
    let states: Vec<_> = list["keys"].as_array().unwrap().iter().map(|key| (&key["id"], &key["state"])).collect();
    assert_eq!(states, [(&json!(other), &json!("usable")), (&json!(id), &json!("revoked"))]);
    assert!(!list.to_string().contains(&key), "a list never shows a key");

    // With the last key gone the door stays closed, also for the next server.
    assert_eq!(workspace.run(&["keys", "revoke", &other]).code, Some(0));
    kept.text();
    assert_eq!(server.message("echo", "send", "hi", "").status, 401);
    drop(server);
    assert_eq!(Server::start(&workspace).message("echo", "send", "hi", "").status, 401);
}

#[test]
fn a_key_that_expires_ends_its_streams() {
    let workspace = Workspace::new();
    let server = Server::start(&workspace);
    // The key must live until the stream is open, and how long that takes is the machine's affair.
    let held = ["1500ms", "6s", "30s"].iter().find_map(|life| {
        let (id, key, created) = create(&workspace, &["--expires", life]);
        assert!(created["key"]["expiresAt"].is_string());
        let mut stream = server.message("probe", "stream", "hold", &key);
        let held = stream.status == 200 && stream.reaches("TASK_STATE_WORKING");
        held.then_some((id, key, stream))
    });
    let (id, key, stream) = held.expect("no key lived long enough to open a stream");
    // Nothing but the key's end ends it.
    stream.whole_text();
    assert_eq!(server.message("echo", "send", "hi", &key).status, 401);
    let list = workspace.run(&["keys", "list", "-o", "json"]).json();
    let listed = list["keys"].as_array().unwrap().iter().find(|key| key["id"] == id.as_str()).unwrap();
    assert_eq!(listed["state"], "expired", "{list}");
}

#[test]
fn a_key_sees_its_own_tasks_only() {
    let workspace = Workspace::new();
    let server = Server::start(&workspace);
    let sent = server.message("echo", "send", "hi", "").json();
    let path = format!("/a2a/echo/tasks/{}", sent["task"]["id"].as_str().unwrap());
    assert_eq!(server.get(&path, "").status, 200);
    let (_, one, _) = create(&workspace, &["--name", "one"]);
    let (_, other, _) = create(&workspace, &["--name", "other", "--admin"]);
    assert_eq!(server.get(&path, &one).status, 404);
    let sent = server.message("echo", "send", "hi", &one).json();
    let path = format!("/a2a/echo/tasks/{}", sent["task"]["id"].as_str().unwrap());
    assert_eq!((server.get(&path, &one).status, server.get(&path, &other).status), (200, 404));
}

#[test]
fn without_a_server_the_file_is_used() {
    let workspace = Workspace::new();
    let list = workspace.run(&["keys", "list"]);
    assert_eq!((list.code, list.stdout.as_str()), (Some(0), "there are no keys; switchboard keys create makes one\n"));
    assert!(!workspace.path().join(".switchboard").exists(), "looking creates nothing");
    let run = workspace.run(&["keys", "revoke", "key_1"]);
    assert!(run.code == Some(1) && run.stderr.contains("there is no data in"), "{}", run.stderr);

    let run = workspace.run(&["keys", "create", "--name", "laptop", "--agents", "ecko", "--expires", "30d"]);
    assert!(run.stdout.contains("once a server runs on this data"), "{}", run.stdout);
    assert!(run.stderr.contains("this workspace has no agent ecko"), "{}", run.stderr);
    let id = run.stdout.lines().nth(1).unwrap().split_whitespace().nth(1).unwrap().to_owned();
    let list = workspace.run(&["keys", "list"]);
    assert!(
        list.stdout.contains(&id) && list.stdout.contains("laptop") && list.stdout.contains("ecko"),
        "{}",
        list.stdout
    );

    let unknown = workspace.run(&["keys", "revoke", "key_0"]);
    assert!(unknown.code == Some(1) && unknown.stderr.contains("there is no key \"key_0\""), "{}", unknown.stderr);
    let data = workspace.path().join(".switchboard").display().to_string();
    let elsewhere = workspace.run(&["keys", "revoke", "--data-dir", &data, "key_0"]);
    let list = format!("switchboard keys list --data-dir {data} shows them all");
    assert!(elsewhere.code == Some(1) && elsewhere.stderr.contains(&list), "{}", elsewhere.stderr);
    assert_eq!(workspace.run(&["keys", "revoke", &id]).code, Some(0));
    let again = workspace.run(&["keys", "revoke", &id]);
    assert!(again.code == Some(1) && again.stderr.contains("already revoked"), "{}", again.stderr);
    for (arguments, role) in [(vec![], "none"), (vec!["--role", "viewer"], "viewer"), (vec!["--admin"], "admin")] {
        let (id, _, created) = create(&workspace, &arguments);
        assert_eq!(created["key"]["scopes"]["role"], role);
        let list = workspace.run(&["keys", "list"]).stdout;
        let line = list.lines().find(|line| line.starts_with(&id)).unwrap();
        assert!(line.split_whitespace().any(|word| word == role), "{list}");
    }
    let both = workspace.run(&["keys", "create", "--role", "viewer", "--admin"]);
    assert!(both.code == Some(2) && both.stderr.contains("--admin"), "{}", both.stderr);
    for arguments in [
        ["--expires", "30"],
        ["--expires", "0s"],
        ["--agents", "Echo"],
        ["--agents", "echo,,probe"],
        ["--role", "owner"],
    ] {
        let run = workspace.run(&[&["keys", "create"], &arguments[..]].concat());
        assert_eq!(run.code, Some(2), "{arguments:?}");
    }
    let run = workspace.run(&["keys", "create", "--name", "two\nlines"]);
    assert!(run.code == Some(1) && run.stderr.contains("no line breaks"), "{}", run.stderr);
}
