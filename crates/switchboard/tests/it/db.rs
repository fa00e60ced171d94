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

#[test]
fn a_backup_is_checked_and_restored_with_the_data_from_before_kept() {
    let workspace = Workspace::new();
    let server = Server::start(&workspace);
    let path_of = |sent: serde_json::Value| format!("/a2a/echo/tasks/{}", sent["task"]["id"].as_str().unwrap());
    let early = path_of(server.message("echo", "send", "before the backup", "").json());
    assert_eq!(workspace.run(&["db", "backup", "night's copy.db"]).code, Some(0));
    let late = path_of(server.message("echo", "send", "after the backup", "").json());
    let checked = workspace.run(&["db", "check", "night's copy.db"]);
    let whole = "1 tasks in 1 event rows: all is well\n";
    assert_eq!((checked.code, checked.stdout.as_str()), (Some(0), whole), "{}", checked.stderr);

    let held = workspace.run(&["db", "restore", "night's copy.db"]);
    assert!(held.code == Some(1) && held.stderr.contains("is in use by process"), "{}", held.stderr);
    assert!(held.stderr.contains("next: stop that server, then run this again"), "{}", held.stderr);
    server.stop();

    let restored = workspace.run(&["db", "restore", "night's copy.db"]);
    assert_eq!(restored.code, Some(0), "{}", restored.stderr);
    assert!(restored.stdout.starts_with("restored night's copy.db: 1 tasks in 1 event rows\n"), "{}", restored.stdout);
    let kept = restored.stdout.lines().find_map(|line| line.strip_prefix("the data from before is in ")).unwrap();
    let before = workspace.run(&["db", "check", kept]);
    assert!(before.code == Some(0) && before.stdout.starts_with("2 tasks"), "{}{}", before.stdout, before.stderr);
    let names = || {
        let entries = std::fs::read_dir(workspace.path().join(".switchboard")).unwrap();
        let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    let kept_name = std::path::Path::new(kept).file_name().unwrap().to_str().unwrap().to_owned();
    let expected = ["switchboard.db".to_owned(), kept_name];
    let data: Vec<String> = names().into_iter().filter(|name| name.starts_with("switchboard.db")).collect();
    assert_eq!(data, expected, "nothing half and no log of another file is left");

    let server = Server::start(&workspace);
    assert!(server.get(&early, "").json().to_string().contains("before the backup"));
    assert_eq!(server.get(&late, "").status, 404, "what came after the backup is not in it");
    server.stop();
    // And back again: the data from before is a backup like any other.
    let back = workspace.run(&["db", "restore", kept, "-o", "json"]).json();
    assert_eq!((&back["tasks"], back["before"].is_string()), (&2.into(), true), "{back}");
}

#[test]
fn a_backup_that_cannot_be_used_changes_nothing() {
    let workspace = Workspace::new();
    let server = Server::start(&workspace);
    server.message("echo", "send", "hi", "").json();
    assert_eq!(workspace.run(&["db", "backup", "good.db"]).code, Some(0));
    server.stop();
    let database = workspace.path().join(".switchboard/switchboard.db");
    let before = std::fs::read(&database).unwrap();
    let tampered = |name: &str, sql: &str| {
        std::fs::copy(workspace.path().join("good.db"), workspace.path().join(name)).unwrap();
        rusqlite::Connection::open(workspace.path().join(name)).unwrap().execute_batch(sql).unwrap();
    };
    tampered("newer.db", "UPDATE meta SET value = 999 WHERE name = 'schema'");
    tampered("damaged.db", "DELETE FROM event");
    tampered("garbage.db", "UPDATE event SET blob = CAST(replace(blob, '}', ']') AS BLOB)");
    std::fs::create_dir(workspace.path().join("folder")).unwrap();
    let whole = std::fs::read(workspace.path().join("good.db")).unwrap();
    std::fs::write(workspace.path().join("half.db"), &whole[..whole.len() / 2]).unwrap();
    std::fs::write(workspace.path().join("text.db"), "no database at all, however long it is, and it is long enough")
        .unwrap();
    rusqlite::Connection::open(workspace.path().join("photos.db"))
        .unwrap()
        .execute_batch("CREATE TABLE photos (id)")
        .unwrap();
    for (name, problem) in [
        ("newer.db", "the database has schema 999"),
        ("damaged.db", "damaged.db cannot be restored: "),
        ("garbage.db", "cannot be read: "),
        ("folder", "folder is a directory\nnext: name a file that db backup has written"),
        ("half.db", "damaged beyond reading"),
        ("text.db", "damaged beyond reading"),
        ("photos.db", "schema 0"),
        ("nothing.db", "there is no database at nothing.db"),
        (".switchboard/switchboard.db", "is the database of this data directory"),
    ] {
        let run = workspace.run(&["db", "restore", name]);
        assert_eq!(run.code, Some(1), "{name}: {}", run.stdout);
        assert!(run.stderr.contains(problem) && run.stderr.contains("\nnext: "), "{name}: {}", run.stderr);
        if !name.starts_with('.') {
            let run = workspace.run(&["db", "check", name]);
            assert_eq!(run.code, Some(1), "{name}");
            let is_told = run.stderr.contains("folder is a directory\nnext: name a file that db backup has written");
            assert_eq!(is_told, name == "folder", "{name}: {}", run.stderr);
        }
    }
    assert_eq!(std::fs::read(&database).unwrap(), before);
    let left = std::fs::read_dir(workspace.path().join(".switchboard")).unwrap();
    let left: Vec<_> = left.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert!(!left.iter().any(|name| name.contains("restor")), "{left:?}");
    assert_eq!(workspace.run(&["db", "restore", "good.db"]).code, Some(0));
    // On a machine that has nothing yet.
    let fresh = Workspace::new();
    let good = workspace.path().join("good.db");
    let run = fresh.run(&["db", "restore", good.to_str().unwrap(), "-o", "json"]);
    assert_eq!((run.code, &run.json()["before"]), (Some(0), &serde_json::Value::Null), "{}", run.stderr);
}

#[test]
fn a_server_does_not_start_on_a_file_that_is_damaged() {
    let workspace = Workspace::new();
    Server::start(&workspace).stop();
    let path = workspace.path().join(".switchboard/switchboard.db");
    let database = rusqlite::Connection::open(&path).unwrap();
    let number = |sql: &str| usize::from(database.query_row(sql, [], |row| row.get::<_, u16>(0)).unwrap());
    let root = number("SELECT rootpage FROM sqlite_schema WHERE name = 'callback_update'");
    let page = number("PRAGMA page_size");
    drop(database);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[(root - 1) * page..root * page].fill(0xff);
    std::fs::write(&path, bytes).unwrap();
    let run = workspace.run(&["serve", "--bind", "127.0.0.1:0"]);
    assert_eq!(run.code, Some(1), "{}", run.stdout);
    assert!(run.stderr.contains("damaged") && run.stderr.contains("switchboard db restore FILE"), "{}", run.stderr);
}
