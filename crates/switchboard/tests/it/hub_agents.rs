//! `switchboard agents`: the roster of a running server, and the registrations of agents elsewhere.

use std::net::TcpListener;

use serde_json::{Value, json};

use crate::program::{Run, Workspace};
use crate::server::Server;
use crate::tls::Issued;

/// A hub, and a server with an agent elsewhere.
struct Hub {
    workspace: Workspace,
    server: Server,
    far: Server,
    _far_folder: Workspace,
}

impl Hub {
    fn start() -> Self {
        let far_folder = Workspace::new().file("agents.yaml", "agents: [{ name: far, builtin: echo }]\n");
        let far = Server::start(&far_folder);
        let workspace = Workspace::new().file("agents.yaml", "agents: [{ name: here, builtin: echo }]\n");
        let server = Server::start(&workspace);
        Self { workspace, server, far, _far_folder: far_folder }
    }

    fn far_url(&self) -> String {
        format!("http://{}/a2a/far", self.far.address)
    }

    fn run(&self, arguments: &[&str]) -> Run {
        self.workspace.run(&[&["agents"], arguments].concat())
    }

    #[track_caller]
    fn done(&self, arguments: &[&str]) -> Value {
        let run = self.run(&[arguments, &["-o", "json"]].concat());
        assert_eq!(run.code, Some(0), "{}{}", run.stdout, run.stderr);
        run.json()
    }

    /// The exit code, the error and the next step.
    #[track_caller]
    fn refused(&self, arguments: &[&str]) -> (i32, String, String) {
        let run = self.run(arguments);
        assert_eq!(run.stdout, "", "{arguments:?}");
        let line = |start: &str| run.stderr.lines().find_map(|line| line.strip_prefix(start)).unwrap_or("").to_owned();
        (run.code.unwrap(), line("error: "), line("next: "))
    }
}

/// An address where nothing listens.
fn nowhere() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}

#[test]
fn an_agent_elsewhere_is_added_called_changed_and_removed() {
    let hub = Hub::start();
    let found = hub.done(&["probe", &hub.far_url()]);
    assert_eq!((&found["reachable"], &found["name"]), (&json!(true), &json!("Echo")));

    // Without a name it gets the one on its card.
    let added = hub.done(&["add", &hub.far_url()]);
    let address = format!("http://{}/a2a/echo", hub.server.address);
    assert_eq!(added, json!({ "added": [{ "name": "echo", "version": 1, "address": address }] }));
    let sent = hub.workspace.run(&["send", "echo", "over there", "-q"]);
    assert_eq!((sent.code, sent.stdout.as_str()), (Some(0), "over there\n"), "{}", sent.stderr);

    let table = hub.run(&["list"]);
    let lines: Vec<Vec<&str>> = table.stdout.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0], ["AGENT", "KIND", "STATE", "SKILLS", "ADDRESS"]);
    let row = |name: &str| lines.iter().find(|line| line[0] == name).unwrap().join(" ");
    assert_eq!(row("echo"), format!("echo url up echo {address}"));
    assert!(row("here").starts_with("here builtin served echo http://"), "{}", table.stdout);
    assert_eq!(table.stdout, hub.run(&[]).stdout, "a list is what there is without a word");

    let shown = hub.run(&["show", "echo"]).stdout;
    for text in ["registration, version 1", &hub.far_url(), "closed", "answered in", "card"] {
        assert!(shown.contains(text), "no {text} in\n{shown}");
    }
    std::fs::write(
        hub.workspace.path().join("echo.yaml"),
        format!("url: {}\ndescription: Echoes from afar\n", hub.far_url()),
    )
    .unwrap();
    let updated = hub.run(&["update", "echo", "echo.yaml"]);
    assert_eq!((updated.code, updated.stdout.as_str()), (Some(0), "echo has version 2 now\n"), "{}", updated.stderr);
    assert_eq!(hub.done(&["show", "echo"])["description"], "Echoes from afar");
    let (code, error, next) = hub.refused(&["update", "echo", "echo.yaml", "--if-version", "1"]);
    assert_eq!((code, error.as_str()), (1, "agent echo has version 2 now: read it again"));
    assert_eq!(next, "switchboard agents show echo");
    assert_eq!(hub.done(&["refresh", "echo"])["probe"]["up"], true);

    assert_eq!(hub.run(&["remove", "echo"]).stdout, "removed echo\n");
    assert_eq!(hub.done(&["list"])["agents"].as_array().map(Vec::len), Some(1));
}

#[test]
fn what_cannot_be_done_with_an_agent_says_what_can() {
    let hub = Hub::start();
    hub.done(&["add", &hub.far_url(), "--name", "reviewer"]);
    let dead = nowhere();

    let (code, error, next) = hub.refused(&["show", "reviwer"]);
    assert_eq!((code, error.as_str()), (1, "there is no agent reviwer"));
    assert!(next.starts_with("did you mean reviewer?"), "{next}");
    // A list of agents is there, and no agent.
    let (code, error, _) = hub.refused(&["show", "runtime"]);
    assert_eq!((code, error.as_str()), (1, "there is no agent runtime"));
    let (code, error, _) = hub.refused(&["remove", "runtime"]);
    assert_eq!((code, error.as_str()), (1, "there is no agent runtime"));
    let (code, error, next) = hub.refused(&["add", &hub.far_url(), "--name", "reviewer"]);
    assert_eq!((code, next.as_str()), (1, "switchboard agents update reviewer FILE, or add it under another --name"));
    assert!(error.starts_with("there is an agent reviewer already"), "{error}");
    let (code, _, next) = hub.refused(&["remove", "here"]);
    assert_eq!((code, next.as_str()), (1, "change its entry in agents.yaml; the server follows the file"));
    let (code, _, next) = hub.refused(&["accept", "reviewer"]);
    assert_eq!((code, next.as_str()), (1, "switchboard agents refresh reviewer looks whether it has changed"));
    let (code, error, next) = hub.refused(&["probe", &dead]);
    assert_eq!(code, 3);
    assert!(error.contains(&dead) && next == "check the address, and whether the agent runs", "{error}; {next}");
    let (code, _, next) = hub.refused(&["add", &dead, "--name", "dead"]);
    assert!(code == 3 && next.ends_with("--force adds it although it does not answer"), "{next}");

    // A file is checked as agents.yaml is, and secrets of the server are not for the asking.
    let items = format!("agents:\n  - {{ name: one, url: '{dead}', bearerEnv: HOME, colour: red }}\n");
    std::fs::write(hub.workspace.path().join("bad.yaml"), items).unwrap();
    let (code, error, _) = hub.refused(&["add", "bad.yaml", "--force"]);
    assert!(code == 1 && error.contains("colour"), "{error}");
    let (code, error, _) = hub.refused(&["add", "missing.yaml"]);
    assert!(code == 2 && error.starts_with("missing.yaml cannot be read"), "{error}");
    let (code, _, next) = hub.refused(&["list", "--server", &dead]);
    assert_eq!((code, next.as_str()), (3, "check the address, and whether the server runs"));
    let (code, _, next) = hub.refused(&["list", "--server", &format!("http://{}/elsewhere", hub.server.address)]);
    assert_eq!(code, 3);
    assert!(next.starts_with("name the base address of one with --server"), "{next}");
}

#[test]
fn a_roll_call_fails_if_one_agent_cannot_be_reached() {
    let mut hub = Hub::start();
    hub.done(&["add", &hub.far_url(), "--name", "reviewer"]);
    let all_there = hub.done(&["rollcall"]);
    assert_eq!((&all_there["pass"], &all_there["fail"]), (&json!(2), &json!(0)), "{all_there}");

    let empty = Workspace::new();
    let other = std::mem::replace(&mut hub.far, Server::start(&empty));
    other.stop();
    let run = hub.run(&["rollcall"]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(1), "1 pass, 0 warn, 1 fail\n"), "{}", run.stdout);
    let lines: Vec<&str> = run.stdout.lines().collect();
    assert!(lines[0].starts_with("pass  here"), "{}", run.stdout);
    assert!(lines[1].starts_with("fail  reviewer  "), "{}", run.stdout);
    let json = hub.run(&["rollcall", "-o", "json"]);
    let verdicts =
        json.json()["agents"].as_array().unwrap().iter().map(|agent| agent["verdict"].clone()).collect::<Vec<_>>();
    assert_eq!((json.code, verdicts), (Some(1), vec![json!("pass"), json!("fail")]));
}

#[test]
fn a_roll_call_looks_for_the_programs_of_agents_that_start_one() {
    let agents = "agents:
  - { name: bad, cli: generic, command: [./gone.sh] }
  - { name: good, cli: generic, command: [./good.sh], skills: [{ name: lint, description: Lints }] }
  - { name: odd, cli: generic, command: [./good.sh], env: [ODD_KEY], skills: [{ name: lint, description: Lints }] }
";
    let workspace = Workspace::new().file("agents.yaml", agents).file("good.sh", "#!/bin/sh\necho good\n");
    let script = workspace.path().join("good.sh");
    std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let server = Server::start(&workspace);
    let run = workspace.run(&["agents", "rollcall"]);
    let lines: Vec<&str> = run.stdout.lines().collect();
    assert_eq!((run.code, lines.len()), (Some(1), 3), "{}{}", run.stdout, run.stderr);
    assert!(lines[0].starts_with("fail  bad ") && lines[0].contains("gone.sh"), "{}", run.stdout);
    assert!(
        lines[1].starts_with("pass  good ") && lines[1].ends_with("its program is there; skills: lint"),
        "{}",
        run.stdout
    );
    assert!(lines[2].starts_with("warn  odd ") && lines[2].contains("ODD_KEY is not set here"), "{}", run.stdout);
    assert_eq!(run.stderr, "1 pass, 1 warn, 1 fail\n");

    // Named by its address it may be anywhere, and so may its programs.
    let named = workspace.run(&["agents", "rollcall", "--server", &format!("http://{}", server.address)]);
    assert_eq!((named.code, named.stdout.lines().filter(|line| line.starts_with("fail")).count()), (Some(0), 0));
}

#[test]
fn a_server_with_keys_wants_one_with_the_role() {
    let hub = Hub::start();
    let key = |role: &str| {
        let created = hub.workspace.run(&["keys", "create", "--role", role, "-o", "json"]).json();
        created["key"]["secret"].as_str().unwrap().to_owned()
    };
    let (viewer, admin) = (key("viewer"), key("admin"));
    // The names are known at the control socket; the rest needs a key.
    let plain = hub.run(&["list"]);
    assert!(plain.code == Some(0) && plain.stdout.contains("here"), "{}", plain.stderr);
    assert!(plain.stderr.contains("with a key in A2ACLI_BEARER"), "{}", plain.stderr);
    let (code, _, next) = hub.refused(&["add", &hub.far_url()]);
    assert_eq!(
        (code, next.as_str()),
        (4, "set A2ACLI_BEARER to a key; switchboard keys create --role admin makes one that may")
    );
    let (code, _, next) = hub.refused(&["add", &hub.far_url(), "--bearer", &viewer]);
    assert!(code == 4 && next.starts_with("check --bearer and --api-key"), "{next}");
    hub.done(&["add", &hub.far_url(), "--name", "reviewer", "--api-key", &admin]);
    let listed = hub.done(&["list", "--bearer", &viewer]);
    assert_eq!((&listed["agents"][1]["name"], &listed["agents"][1]["url"]), (&json!("reviewer"), &Value::Null));
    let server = format!("http://{}", hub.server.address);
    let elsewhere = Workspace::new().variable("A2ACLI_SERVER", &server).variable("A2ACLI_BEARER", &admin);
    let shown = elsewhere.run(&["agents", "show", "reviewer", "-o", "json"]);
    assert_eq!(shown.json()["url"], hub.far_url(), "{}", shown.stderr);
}

#[test]
fn the_certificate_of_the_server_here_is_trusted_and_another_one_by_its_file() {
    let issued = Issued::new();
    let workspace = Workspace::new()
        .file("switchboard.yaml", "server:\n  tls: { cert: tls/cert.pem, key: tls/key.pem }\n")
        .file("tls/cert.pem", &issued.certificate_pem)
        .file("tls/key.pem", &issued.key_pem);
    let server = Server::start(&workspace);
    let here = workspace.run(&["agents", "show", "echo", "-o", "json"]);
    assert_eq!(here.json()["name"], "echo", "{}", here.stderr);
    let url = format!("https://{}", server.address);
    let elsewhere = Workspace::new().file("cert.pem", &issued.certificate_pem);
    let refused = elsewhere.run(&["agents", "list", "--server", &url]);
    assert!(refused.code == Some(3) && refused.stderr.contains("--ca FILE"), "{}", refused.stderr);
    let trusted = elsewhere.run(&["agents", "list", "--server", &url, "--ca", "cert.pem"]);
    assert!(trusted.code == Some(0) && trusted.stdout.contains("echo"), "{}", trusted.stderr);
}

#[test]
fn a_broken_file_of_agents_keeps_nobody_from_the_roster_that_says_what_is_wrong_with_it() {
    let workspace = Workspace::new()
        .file("agents.yaml", "agents: [{ name: here, builtin: echo }]\n")
        .file("switchboard.yaml", "hub: { reload: 100ms }\n");
    let _server = Server::start(&workspace);
    let workspace = workspace.file("agents.d/broken.yaml", "agents: [{ name: there, bultin: echo }]\n");
    let listed = || {
        let run = workspace.run(&["agents", "-o", "json"]);
        assert_eq!(run.code, Some(0), "{}{}", run.stdout, run.stderr);
        run.json()
    };
    // The server reads its files by itself.
    let told = loop {
        let listed = listed();
        if listed["problems"][0].is_string() {
            break listed;
        }
    };
    assert!(told["problems"][0].as_str().unwrap().contains("agents.d/broken.yaml"), "{told}");
    assert_eq!(told["agents"][0]["name"], "here", "{told}");
    for arguments in [&["feed"][..], &["health"], &["send", "here", "hello", "-q"], &["task", "list"]] {
        let run = workspace.run(arguments);
        assert_eq!(run.code, Some(0), "{arguments:?}: {}{}", run.stdout, run.stderr);
    }
}
