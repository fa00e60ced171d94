//! `task download`: files in the folder that was named, and nothing overwritten that was there.

use serde_json::json;

use super::Fleet;

#[test]
fn files_are_saved_and_nothing_else_is_touched() {
    let fleet = Fleet::new();
    let path = |name: &str| fleet.workspace.path().join(name);
    std::fs::write(path("in.txt"), "content\n").unwrap();
    let task = |arguments: &[&str]| {
        let sent = fleet.run(&[&["send", "echo", "--json"], arguments].concat()).json();
        sent["task"]["id"].as_str().unwrap().to_owned()
    };
    let id = task(&["--file", "in.txt", "--file", "https://elsewhere.example/x"]);
    let saved = fleet.run(&["task", "download", "echo", &id, "--out", "got/here"]);
    let shown =
        "saved: got/here/in.txt\nnot fetched: https://elsewhere.example/x\ntask: ID1\ncontext: ID2\nstate: completed\n";
    assert_eq!((saved.code, fleet.stable(&saved.stdout).as_str()), (Some(0), shown), "{}", saved.stderr);
    assert_eq!(std::fs::read_to_string(path("got/here/in.txt")).unwrap(), "content\n");

    std::fs::write(path("got/here/in.txt"), "mine").unwrap();
    let again = fleet.run(&["task", "download", "echo", &id, "--out", "got/here"]);
    assert!(again.code == Some(1) && again.stderr.contains("--force"), "{}", again.stderr);
    assert_eq!(std::fs::read_to_string(path("got/here/in.txt")).unwrap(), "mine");
    let forced = fleet.run(&["task", "download", "echo", &id, "--out", "got/here", "--force", "--json"]);
    assert_eq!(forced.json(), json!({ "saved": ["got/here/in.txt"], "elsewhere": ["https://elsewhere.example/x"] }));
    assert_eq!(std::fs::read_to_string(path("got/here/in.txt")).unwrap(), "content\n");

    // Names are the agent's: only their last part counts, and none is hidden, an option or there twice.
    let names = ["report.pdf", "../../etc/passwd", r"C:\Windows\a.dll", "", "..", "a/..", "\u{1b}", ".bashrc", "--rf"];
    let long = "ä".repeat(500);
    let parts: Vec<_> = names
        .iter()
        .chain([&long.as_str(), &"a.txt", &"a.txt"])
        .map(|name| json!({ "raw": "eA==", "filename": name }))
        .collect();
    let message = json!({ "message": { "messageId": "m", "role": "ROLE_USER", "parts": parts } });
    let sent = fleet.server.post("/a2a/echo/message:send", "", &message.to_string()).json();
    let saved =
        fleet.run(&["task", "download", "echo", sent["task"]["id"].as_str().unwrap(), "--out", "evil", "--json"]);
    let saved: Vec<String> = serde_json::from_value(saved.json()["saved"].clone()).unwrap();
    let long = format!("evil/{}", "ä".repeat(100));
    let plain = ["report.pdf", "passwd", "a.dll", "file", "file-2", "file-3", "file-4", "bashrc", "rf"];
    let plain = plain.map(|name| format!("evil/{name}")).into_iter();
    let wanted: Vec<String> = plain.chain([long, "evil/a.txt".to_owned(), "evil/a-2.txt".to_owned()]).collect();
    assert_eq!(saved, wanted);

    let none = task(&["only text"]);
    assert_eq!(fleet.run(&["task", "download", "echo", &none]).stderr, "warning: the task has produced no files\n");
}
