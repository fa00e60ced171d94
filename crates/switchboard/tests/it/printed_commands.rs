//! Every command that a server prints when it is ready works as it is, pasted into another shell in the same folder.

use std::process::Command;

use rcgen::generate_simple_self_signed;

use crate::program::Workspace;
use crate::server::Server;

/// Pastes a line into a shell that knows nothing of the server's flags and variables.
fn pasted(workspace: &Workspace, line: &str, key: &str) -> String {
    let programs = std::path::Path::new(env!("CARGO_BIN_EXE_switchboard")).parent().unwrap();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", line]).current_dir(workspace.path()).env_clear().env("PATH", path).env("A2A_KEY", key);
    let output = shell.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{line}\n{text}");
    text
}

#[track_caller]
fn all_work(workspace: &Workspace, server: &Server, key: &str) {
    let called = pasted(workspace, server.line_under("try it, in this folder:"), key);
    assert!(called.contains("state: completed") && !called.contains("trying"), "{called}");
    let sent = pasted(workspace, server.line_under("send a message:"), key);
    assert!(sent.contains("TASK_STATE_COMPLETED"), "{sent}");
    let streamed = pasted(workspace, server.line_under("stream one:"), key);
    assert!(streamed.contains("chunk 3") && streamed.contains("TASK_STATE_COMPLETED"), "{streamed}");
}

#[test]
fn printed_commands_find_a_server_whose_data_is_elsewhere() {
    let workspace = Workspace::new();
    let server = Server::start_with(&workspace, &["--bind", "127.0.0.1:0", "--data-dir", "my  data"]);
    all_work(&workspace, &server, "");
    // The line that tells of keys names the command that makes them, for this server.
    let callers = server.greeting.iter().find(|line| line.starts_with("callers")).unwrap();
    let create = callers.split("; ").nth(1).unwrap().strip_suffix(" changes that").unwrap();
    let created = pasted(&workspace, create, "");
    assert!(created.contains("from now on the running server refuses every request without one"), "{created}");
    server.stop();

    let workspace = Workspace::new().variable("SWITCHBOARD_STORE_DATA_DIR", "by-variable");
    let server = Server::start(&workspace);
    all_work(&workspace, &server, "");
    server.stop();
}

#[test]
fn printed_commands_find_a_server_of_another_folder() {
    let workspace = Workspace::new().file("it's here/switchboard.yaml", "store: { dataDir: data }\n");
    let server = Server::start_with(&workspace, &["--bind", "127.0.0.1:0", "--workspace", "it's here"]);
    all_work(&workspace, &server, "");
    server.stop();
}

#[test]
fn printed_commands_take_a_key_from_a_variable() {
    let workspace = Workspace::new();
    let created = workspace.run(&["keys", "create", "--data-dir", "keyed", "--json"]).json();
    let server = Server::start_with(&workspace, &["--bind", "127.0.0.1:0", "--data-dir", "keyed"]);
    assert!(server.greeting.iter().any(|line| line.trim() == "export A2A_KEY="), "{:?}", server.greeting);
    all_work(&workspace, &server, created["key"]["secret"].as_str().unwrap());
    server.stop();
}

#[test]
fn printed_commands_trust_the_certificate_and_call_the_name_it_is_for() {
    for names in [&["127.0.0.1"][..], &["localhost"]] {
        let issued = generate_simple_self_signed(names.iter().copied().map(str::to_owned).collect::<Vec<_>>()).unwrap();
        let workspace = Workspace::new()
            .file("tls/cert.pem", issued.cert.pem())
            .file("tls/key.pem", issued.signing_key.serialize_pem())
            .variable("SWITCHBOARD_SERVER_TLS_CERT", "tls/cert.pem")
            .variable("SWITCHBOARD_SERVER_TLS_KEY", "tls/key.pem");
        let server = Server::start(&workspace);
        all_work(&workspace, &server, "");
        server.stop();
    }
}
