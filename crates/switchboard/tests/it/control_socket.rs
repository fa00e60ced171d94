//! The socket in the data directory: who may use it, and what it makes of nonsense.

use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;

use crate::program::Workspace;
use crate::server::Server;

#[test]
fn only_its_owner_may_use_it_and_nonsense_is_refused() {
    let workspace = Workspace::new();
    let server = Server::start(&workspace);
    let data_dir = workspace.path().join(".switchboard");
    let mode = |path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let socket = data_dir.join("switchboard.sock");
    assert_eq!((mode(&data_dir), mode(&socket)), (0o700, 0o600));
    for (request, wanted) in [
        ("nonsense\n", "does not understand"),
        ("{\"command\":\"keys.delete\"}\n", "does not understand"),
        ("{\"command\":\"db.backup\",\"file\":\"copy.db\"}\n", "not an absolute path"),
        ("\n", "does not understand"),
    ] {
        let mut stream = UnixStream::connect(&socket).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        assert!(reply.contains("refused") && reply.contains(wanted), "{request}: {reply}");
    }
    let status = workspace.run(&["status", "-o", "json"]).json();
    assert_eq!((&status["pid"], &status["address"]), (&server.pid().into(), &server.address.as_str().into()));
    server.stop();
    assert!(!socket.exists(), "a server that ended leaves no socket behind");
}

#[test]
fn status_without_a_server_names_the_data_and_what_starts_one() {
    let workspace = Workspace::new();
    assert_eq!(workspace.run(&["keys", "create", "--data-dir", "data"]).code, Some(0));
    assert_eq!(workspace.run(&["keys", "create"]).code, Some(0));
    let path = workspace.path().canonicalize().unwrap();
    let folder = path.to_str().unwrap();
    for (flags, data_dir, command) in [
        (&[][..], ".switchboard", "switchboard serve".to_owned()),
        (&["--data-dir", "data"], "data", "switchboard serve --data-dir data".to_owned()),
        (&["--workspace", folder], ".switchboard", format!("switchboard serve --workspace {folder}")),
    ] {
        let status = workspace.run(&[&["status"], flags].concat());
        let data_dir = path.join(data_dir);
        let wanted =
            format!("error: no server runs on the data directory {}\nnext: {command} starts one\n", data_dir.display());
        assert_eq!((status.code, status.stderr), (Some(1), wanted), "{flags:?}");
    }
}

#[test]
fn a_data_directory_may_have_a_long_path_and_a_stale_socket() {
    let workspace = Workspace::new();
    let data_dir = workspace.path().join("a-rather-long-name/".repeat(10));
    let flags = ["--data-dir", data_dir.to_str().unwrap()];
    let server = Server::start_with(&workspace, &[&["--bind", "127.0.0.1:0"], &flags[..]].concat());
    assert_eq!(workspace.run(&[&["status"], &flags[..]].concat()).code, Some(0));
    server.signal("KILL");
    server.ended();
    assert!(data_dir.join("switchboard.sock").exists(), "a killed server leaves its socket");
    assert_eq!(workspace.run(&[&["keys", "list"], &flags[..]].concat()).code, Some(0));
    let server = Server::start_with(&workspace, &[&["--bind", "127.0.0.1:0"], &flags[..]].concat());
    assert_eq!(workspace.run(&[&["status"], &flags[..]].concat()).code, Some(0));
    server.stop();
}
