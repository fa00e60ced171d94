//! `switchboard db`: on the file, beside a running server too.

use crate::program::Workspace;
use crate::server::Server;

#[test]
fn a_backup_of_a_running_server_can_be_served() {
    let workspace = Workspace::new();
    let server = Server::start(&workspace);
    let sent = server.message("echo", "send", "keep this", "").json();
    let path = format!("/a2a/echo/tasks/{}", sent["task"]["id"].as_str().unwrap());
    let made = workspace.run(&["db", "backup", "copy.db", "-o", "json"]).json();
    assert!(made["bytes"].as_u64().unwrap() > 0, "{made}");
    let again = workspace.run(&["db", "backup", "copy.db"]);
    assert!(again.code == Some(1) && again.stderr.contains("copy.db"), "an existing file is kept: {}", again.stderr);
    assert!(again.stderr.ends_with("\nnext: name a file that does not exist\n"), "{}", again.stderr);
    let check = workspace.run(&["db", "check", "-o", "json"]).json();
    assert_eq!((&check["ok"], &check["tasks"]), (&true.into(), &1.into()), "beside the server: {check}");
    server.stop();
    let by_file = workspace.run(&["db", "backup", "later.db"]);
    assert_eq!(by_file.code, Some(0), "without a server: {}", by_file.stderr);
    let again = workspace.run(&["db", "backup", "later.db"]);
    assert!(again.stderr.ends_with("\nnext: name a file that does not exist\n"), "{}", again.stderr);
    let nowhere = workspace.run(&["db", "backup", "no/such/folder.db"]);
    assert!(nowhere.code == Some(1) && !nowhere.stderr.contains("does not exist"), "{}", nowhere.stderr);

    let restored = Workspace::new();
    std::fs::create_dir(restored.path().join(".switchboard")).unwrap();
    let target = restored.path().join(".switchboard/switchboard.db");
    std::fs::copy(workspace.path().join("copy.db"), target).unwrap();
    let server = Server::start(&restored);
    let task = server.get(&path, "").json();
    assert!(task.to_string().contains("keep this"), "{task}");
    server.stop();
    let check = restored.run(&["db", "check"]);
    assert!(check.code == Some(0) && check.stdout.ends_with("all is well\n"), "{}{}", check.stdout, check.stderr);
}

#[test]
fn damage_is_found_and_named() {
    let workspace = Workspace::new();
    let missing = workspace.run(&["db", "check"]);
    assert!(missing.code == Some(1) && missing.stderr.contains("there is no database at"), "{}", missing.stderr);
    let missing = workspace.run(&["db", "backup", "copy.db"]);
    assert!(missing.code == Some(1) && missing.stderr.contains("there is no data in"), "{}", missing.stderr);

    let server = Server::start(&workspace);
    let sent = server.message("echo", "send", "hi", "").json();
    let id = sent["task"]["id"].as_str().unwrap();
    server.stop();
    let database = rusqlite::Connection::open(workspace.path().join(".switchboard/switchboard.db")).unwrap();
    assert!(database.execute("DELETE FROM event", []).unwrap() > 0);
    drop(database);
    let check = workspace.run(&["db", "check"]);
    assert!(check.code == Some(1) && check.stderr.contains(id), "{}{}", check.stdout, check.stderr);
    let check = workspace.run(&["db", "check", "-o", "json"]);
    assert_eq!((check.code, &check.json()["ok"]), (Some(1), &false.into()));
}
