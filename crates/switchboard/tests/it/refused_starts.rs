//! What `serve` says when it does not start: what is wrong, by name, and what to do.

use std::net::TcpListener;

use crate::program::Workspace;
use crate::server::Server;

#[track_caller]
fn refused(workspace: &Workspace, arguments: &[&str], wanted: &[&str]) {
    let run = workspace.run(&[&["serve"], arguments].concat());
    assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""), "{}", run.stderr);
    for part in wanted {
        assert!(run.stderr.contains(part), "no {part:?} in {}", run.stderr);
    }
}

#[test]
fn a_second_server_on_the_same_data_is_told_who_has_it() {
    let workspace = Workspace::new();
    let server = Server::start(&workspace);
    let holder = format!("in use by process {} (switchboard on http://{})", server.pid(), server.address);
    refused(&workspace, &["--bind", "127.0.0.1:0"], &[&holder, "--data-dir"]);
    // On the same address too, it is the data that is named: another port would not help.
    refused(&workspace, &["--bind", &server.address], &[&holder, "--data-dir"]);
    server.stop();
}

#[test]
fn a_taken_port_is_told_with_who_has_it_and_the_flag_to_use() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let name = std::fs::read_to_string("/proc/self/comm").unwrap();
    let holder = format!("the address {address} is taken by process {} ({})", std::process::id(), name.trim());
    let workspace = Workspace::new();
    refused(&workspace, &["--bind", &address], &[&holder, "--bind"]);
    assert!(!workspace.path().join(".switchboard").exists(), "nothing is created for a server that cannot start");
}

#[test]
fn an_address_of_another_machine_is_refused() {
    refused(&Workspace::new(), &["--bind", "192.0.2.1:80"], &["cannot listen on 192.0.2.1:80", "--bind"]);
}

#[test]
fn other_machines_may_reach_it_only_once_there_is_a_key() {
    let workspace = Workspace::new();
    let data_dir = workspace.path().canonicalize().unwrap().join(".switchboard");
    let command = format!("switchboard keys create --data-dir {}", data_dir.display());
    refused(&workspace, &["--bind", "0.0.0.0:0"], &["can be reached from other machines", &command]);
    // The very command it told.
    let words: Vec<&str> = command.split(' ').skip(1).chain(["-o", "json"]).collect();
    let created = workspace.run(&words).json();
    let key = created["key"]["secret"].as_str().unwrap();

    let server = Server::start_with(&workspace, &["--bind", "0.0.0.0:0"]);
    assert_eq!(server.message("echo", "send", "hi", "").status, 401);
    assert_eq!(server.message("echo", "send", "hi", key).status, 200);
    assert_eq!(server.get("/.well-known/agent-card.json", "").status, 200, "the public card needs no key");
    server.stop();
    // A key that no longer works is as good as none.
    let id = created["key"]["id"].as_str().unwrap();
    assert_eq!(workspace.run(&["keys", "revoke", id]).code, Some(0));
    refused(&workspace, &["--bind", "0.0.0.0:0"], &["can be reached from other machines"]);
}

#[test]
fn a_data_directory_that_cannot_be_one_is_named() {
    let workspace = Workspace::new().file("data", "not a directory");
    refused(
        &workspace,
        &["--bind", "127.0.0.1:0", "--data-dir", "data"],
        &["/data cannot be used: there is a file in its place"],
    );
    let workspace =
        Workspace::new().file(".switchboard/switchboard.db", "not a database, but long enough to look at".repeat(50));
    let way_out = ["switchboard db restore FILE", "switchboard db backup makes them", "--data-dir DIR"];
    refused(&workspace, &["--bind", "127.0.0.1:0"], &[&["the database file is damaged"], &way_out[..]].concat());
    for command in [&["db", "check"][..], &["keys", "list"], &["db", "backup", "copy.db"]] {
        let run = workspace.run(command);
        assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""), "{command:?}: {}", run.stderr);
        assert!(run.stderr.contains("damaged") && !run.stderr.contains("db check"), "{command:?}: {}", run.stderr);
        for part in way_out {
            assert!(run.stderr.contains(part), "{command:?} leads nowhere: {}", run.stderr);
        }
    }
}

#[test]
fn every_command_says_the_same_of_a_schema_it_does_not_know() {
    let workspace = Workspace::new();
    assert_eq!(workspace.run(&["keys", "create"]).code, Some(0));
    let data_dir = workspace.path().canonicalize().unwrap().join(".switchboard");
    let database = rusqlite::Connection::open(data_dir.join("switchboard.db")).unwrap();
    let known: i64 = database.query_row("SELECT value FROM meta WHERE name = 'schema'", [], |row| row.get(0)).unwrap();
    assert_eq!(database.execute("UPDATE meta SET value = 999 WHERE name = 'schema'", []).unwrap(), 1);
    drop(database);
    let wanted = format!(
        "error: the data directory {} cannot be used: the database has schema 999, this program knows up to {known}\n\
         next: use the switchboard program that wrote it, or a later one\n",
        data_dir.display()
    );
    for command in [
        &["serve", "--bind", "127.0.0.1:0"][..],
        &["status"],
        &["keys", "create"],
        &["keys", "list"],
        &["keys", "revoke", "key"],
        &["db", "check"],
        &["db", "backup", "copy.db"],
    ] {
        let run = workspace.run(command);
        assert_eq!((run.code, run.stdout.as_str(), run.stderr.as_str()), (Some(1), "", wanted.as_str()), "{command:?}");
    }
    assert!(!workspace.path().join("copy.db").exists(), "nothing is copied");
}

#[test]
fn a_wrong_configuration_starts_nothing() {
    let workspace = Workspace::new().file("switchboard.yaml", "server: { bnd: 127.0.0.1:0 }");
    refused(&workspace, &[], &["switchboard.yaml:1: server.bnd"]);
}
