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
    let none = task(&["only text"]);
    assert_eq!(fleet.run(&["task", "download", "echo", &none]).stderr, "warning: the task has produced no files\n");
}
