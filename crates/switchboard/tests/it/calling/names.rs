//! Agents by name: those of the running server, those elsewhere, and what is said when there is neither. Cards and skills.

use serde_json::{Value, json};

use super::{Fleet, free_address};
use crate::program::Workspace;
use crate::tls::Issued;

#[test]
fn agents_are_listed_with_where_they_are() {
    let content = "agents:\n  - { name: mine, builtin: echo }\n  - { name: far, url: 'http://127.0.0.1:9/a2a' }\n";
    let workspace = Workspace::new().file("agents.yaml", content).variable("SWITCHBOARD_SERVER_BIND", &free_address());
    let idle = workspace.run(&["agents"]);
    let table = "AGENT  KIND     ADDRESS\nmine   builtin  no server runs\nfar    url      http://127.0.0.1:9/a2a\n";
    assert_eq!((idle.code, idle.stdout.as_str()), (Some(0), table));
    assert_eq!(idle.stderr, "next: switchboard serve starts the server that hosts them\n");

    let fleet = Fleet::of(workspace);
    let running = fleet.run(&["agents", "--json"]).json();
    assert_eq!(running["serverRuns"], true);
    let shown = |index: usize| ["name", "kind", "address"].map(|member| running["agents"][index][member].clone());
    let address = |name: &str| format!("http://{}/a2a/{name}", fleet.server.address);
    assert_eq!(shown(0), [json!("far"), json!("url"), json!(address("far"))]);
    assert_eq!(shown(1), [json!("mine"), json!("builtin"), json!(address("mine"))]);
    assert_eq!(running["agents"][0]["url"], "http://127.0.0.1:9/a2a");
    let unknown = fleet.run(&["send", "missing", "hi"]);
    assert_eq!(
        (unknown.code, unknown.errors()),
        (Some(3), vec!["this workspace knows no agent missing; it knows mine, far"])
    );
}

#[test]
fn in_a_folder_without_a_server_the_default_address_is_tried_and_said() {
    let there = Fleet::new();
    let here = Workspace::new().variable("SWITCHBOARD_SERVER_BIND", &there.server.address);
    let data = here.path().canonicalize().unwrap().join(".switchboard");
    let note = format!("no server runs on the data in {}; trying http://{}\n", data.display(), there.server.address);
    let run = here.run(&["send", "echo", "hi", "-q"]);
    assert_eq!((run.code, run.stdout.as_str(), run.stderr.as_str()), (Some(0), "hi\n", note.as_str()));
    let listed = here.run(&["agents"]);
    let told =
        format!("something listens at http://{}: send, chat and task try it for these names\n", there.server.address);
    assert_eq!(listed.stderr, told, "no second server is suggested");
    let unknown = here.run(&["send", "missing", "hi"]);
    assert!(unknown.code == Some(3) && unknown.stderr.starts_with(&note), "{}", unknown.stderr);

    let address = free_address();
    let alone = Workspace::new().variable("SWITCHBOARD_SERVER_BIND", &address);
    let run = alone.run(&["send", "echo", "hi", "--data-dir", "my data"]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(3), ""));
    assert!(
        run.stderr.contains(&format!("my data, and nothing listens at http://{address}, so that")),
        "{}",
        run.stderr
    );
    assert!(
        run.stderr.contains("next: start one with switchboard serve --data-dir 'my data', or name"),
        "{}",
        run.stderr
    );
    let run = alone.run(&["send", "ehco", "hi"]);
    assert!(run.stderr.contains("knows no agent ehco; it knows echo, guide, probe; no server"), "{}", run.stderr);
    assert!(run.stderr.contains("next: did you mean echo?"), "{}", run.stderr);
}

#[test]
fn an_agent_elsewhere_is_called_by_its_name_with_its_secret() {
    let there = Fleet::new();
    let key = there.run(&["keys", "create", "--json"]).json()["key"]["secret"].as_str().unwrap().to_owned();
    let entry = |name: &str, rest: &str| {
        format!("  - {{ name: {name}, url: 'http://{}/a2a/echo'{rest} }}\n", there.server.address)
    };
    let content = [
        "agents:\n".to_owned(),
        entry("known", ", bearerEnv: THERE_KEY, timeoutMs: 60000, headers: { X-Team: blue }"),
        entry("keyed", ", apiKeyEnv: THERE_KEY, timeout: 60s"),
        entry("unknown", ""),
        entry("unset", ", bearerEnv: NOT_SET"),
        entry("unsigned", ", hmacEnv: NOT_SET"),
        entry("tokenless", ", oauth: { tokenUrl: 'http://127.0.0.1:9/', clientId: us, clientSecretEnv: NOT_SET }"),
        entry("uncertified", ", tls: { cert: none.pem, key: none.key }"),
    ];
    let here = Workspace::new().file("agents.yaml", content.concat()).variable("THERE_KEY", &key);
    for name in ["known", "keyed"] {
        let run = here.run(&["send", name, "hi", "-q"]);
        assert_eq!((run.code, run.stdout.as_str()), (Some(0), "hi\n"), "{}", run.stderr);
    }
    for (name, code) in [("unknown", "A2ACLI_ERR_CREDENTIALS_MISSING"), ("unset", "A2ACLI_ERR_CREDENTIALS_MISSING")] {
        let run = here.run(&["send", name, "hi", "--json"]);
        assert_eq!((run.code, &run.json()["error"]["code"]), (Some(4), &Value::from(code)));
    }
    for name in ["unsigned", "tokenless"] {
        let run = here.run(&["send", name, "hi"]);
        assert_eq!(run.code, Some(4), "{}", run.stderr);
        assert!(run.stderr.contains("NOT_SET is not set"), "{}", run.stderr);
    }
    let run = here.run(&["send", "uncertified", "hi"]);
    assert!(run.code == Some(1) && run.stderr.contains("none.pem cannot be read"), "{:?} {}", run.code, run.stderr);
    let here = here.variable("A2ACLI_BEARER", "wrong");
    assert_eq!(here.run(&["send", "known", "hi"]).code, Some(0), "what the file names wins over what is for any agent");
    assert_eq!(here.run(&["send", "unknown", "hi"]).code, Some(4));
    assert_eq!(here.run(&["send", "unknown", "hi", "--api-key", &key]).code, Some(0), "a flag wins over both");
    let checked = here.run(&["config", "check"]);
    assert!(
        checked.stdout.contains(&format!("called at http://{}/a2a/echo", there.server.address)),
        "{}",
        checked.stdout
    );
    let checked = here.run(&["config", "check", "--json"]);
    assert_eq!(checked.json()["remotes"][0]["headers"], json!({ "x-team": "***" }), "{}", checked.stdout);
    assert!(!checked.stdout.contains(&key) && !checked.stdout.contains("blue"));
}

#[test]
fn an_agent_elsewhere_that_is_served_here_is_called_here() {
    let there = Fleet::new();
    let entry = format!("agents: [{{ name: far, url: 'http://{}/a2a/echo' }}]\n", there.server.address);
    let here = Fleet::of(Workspace::new().file("agents.yaml", entry));
    let run = here.run(&["send", "far", "hi", "-q"]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), "hi\n"), "{}", run.stderr);
    let listed = here.run(&["task", "list", "-o", "json"]).json();
    assert_eq!((&listed["totalSize"], &listed["tasks"][0]["agent"]), (&json!(1), &json!("far")));
    assert!(here.run(&["feed"]).stdout.contains("task.completed.far"), "it is a task of this server");

    let Fleet { workspace, server } = here;
    server.stop();
    let run = workspace.run(&["send", "far", "directly", "-q"]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), "directly\n"), "{}", run.stderr);
}

#[test]
fn a_workspace_of_agents_elsewhere_can_be_served_and_hosts_none() {
    let content = "agents:\n  - { name: far, url: 'http://127.0.0.1:9', serve: false }\n";
    let workspace = Workspace::new().file("agents.yaml", content);
    let server = crate::server::Server::start(&workspace);
    let hosted = "no agent is hosted here: all agents of this workspace are elsewhere";
    assert!(server.greeting.iter().any(|line| line == hosted), "{:?}", server.greeting);
    server.stop();
}

#[test]
fn a_local_server_with_a_certificate_of_its_own_is_trusted() {
    let issued = Issued::new();
    let workspace = Workspace::new()
        .file("switchboard.yaml", "server:\n  tls: { cert: tls/cert.pem, key: tls/key.pem }\n")
        .file("tls/cert.pem", &issued.certificate_pem)
        .file("tls/key.pem", &issued.key_pem);
    let fleet = Fleet::of(workspace);
    let run = fleet.run(&["send", "echo", "hi", "-q"]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), "hi\n"), "{}", run.stderr);
    let stranger = Workspace::new();
    let url = format!("https://{}/a2a/echo", fleet.server.address);
    let run = stranger.run(&["send", &url, "hi"]);
    assert_eq!(run.code, Some(3), "a caller without the certificate does not trust it: {}", run.stderr);
    assert!(run.stderr.contains("the certificate is signed by itself and by no trusted authority"), "{}", run.stderr);
    assert!(run.stderr.contains("name the file with --ca FILE"), "{}", run.stderr);
    let certificate = fleet.workspace.path().join("tls/cert.pem");
    let certificate = certificate.to_str().unwrap();
    let run = stranger.run(&["send", &url, "hi", "-q", "--ca", certificate]);
    assert_eq!((run.code, run.stdout.as_str(), run.stderr.as_str()), (Some(0), "hi\n", ""));
    let asked = stranger.run(&["send", &url.replace("echo", "probe"), "ask", "--ca", certificate]);
    assert!(asked.stderr.contains(&format!("next: switchboard send --ca {certificate} ")), "{}", asked.stderr);
    for variable in ["SSL_CERT_FILE", "A2ACLI_CA"] {
        let trusting = Workspace::new().variable(variable, certificate);
        let run = trusting.run(&["send", &url, "hi", "-q"]);
        assert_eq!((run.code, run.stdout.as_str()), (Some(0), "hi\n"), "{variable}: {}", run.stderr);
    }
    for (file, why) in [("nothing.pem", "No such file"), ("empty.pem", "there is no certificate in it")] {
        std::fs::write(stranger.path().join("empty.pem"), "").unwrap();
        let run = stranger.run(&["send", &url, "hi", "--ca", file]);
        assert!(run.code == Some(2) && run.stderr.contains(why), "{}", run.stderr);
    }
    let run = stranger.run(&["send", &url, "hi", "-q", "--insecure"]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), "hi\n"), "{}", run.stderr);
    assert_eq!(run.stderr, "warning: certificates are not checked: any server may be the one that answers\n");
    let run = stranger.run(&["send", &url, "hi", "-q", "--insecure", "--bearer", "hunter2"]);
    assert!(run.stderr.contains("CREDENTIALS ARE SENT") && !run.stderr.contains("hunter2"), "{}", run.stderr);
}

#[test]
fn a_certificate_file_of_the_environment_that_cannot_be_used_is_told() {
    let issued = Issued::new();
    let workspace = Workspace::new()
        .file("switchboard.yaml", "server:\n  tls: { cert: tls/cert.pem, key: tls/key.pem }\n")
        .file("tls/cert.pem", &issued.certificate_pem)
        .file("tls/key.pem", &issued.key_pem);
    let fleet = Fleet::of(workspace);
    let url = format!("https://{}/a2a/echo", fleet.server.address);
    let junk = "-----BEGIN CERTIFICATE-----\naGVsbG8=\n-----END CERTIFICATE-----\n";
    let mixed = format!("{junk}{}", Issued::new().certificate_pem);
    for (file, content, why) in [
        ("missing.pem", None, "No such file"),
        ("empty.pem", Some(""), "there is no certificate in it"),
        ("junk.pem", Some(junk), "no certificate in it is valid"),
    ] {
        let mut workspace = Workspace::new().variable("SSL_CERT_FILE", file);
        if let Some(content) = content {
            workspace = workspace.file(file, content);
        }
        let run = workspace.run(&["send", &url, "hi"]);
        let told = format!("the certificates in {file} cannot be used: {why}");
        assert!(run.code == Some(2) && run.stderr.starts_with(&format!("error: {told}")), "{}", run.stderr);
        assert!(
            run.stderr.ends_with("\nnext: name a file of certificates in PEM with SSL_CERT_FILE\n"),
            "{}",
            run.stderr
        );
        let run = workspace.run(&["send", &url, "hi", "-q", "--insecure"]);
        assert_eq!((run.code, run.stdout.as_str()), (Some(0), "hi\n"), "{}", run.stderr);
        // A server needs it for webhooks alone, if at all.
        let log = std::fs::File::create(workspace.path().join("log.txt")).unwrap();
        crate::server::Server::start_logging_to(&workspace, log).stop();
        let log = std::fs::read_to_string(workspace.path().join("log.txt")).unwrap();
        assert_eq!(log.matches(&format!("warning: {told}")).count(), 1, "{log}");
    }
    let trusting = Workspace::new().variable("SSL_CERT_FILE", "mixed.pem").file("mixed.pem", mixed);
    let run = trusting.run(&["send", &url, "hi"]);
    assert!(run.code == Some(3) && run.stderr.contains("signed by itself"), "one is enough: {}", run.stderr);
}

#[test]
fn a_card_is_shown_with_what_is_used_of_it() {
    let fleet = Fleet::new();
    let card = fleet.run(&["card", "echo"]);
    assert_eq!((card.code, card.stderr.as_str()), (Some(0), ""));
    let shown = fleet.stable(&card.stdout);
    for line in [
        "interfaces:",
        "name: Echo",
        "card: http://ADDRESS/a2a/echo/.well-known/agent-card.json",
        "can: stream, call webhooks",
        "credentials: not needed; ways: none",
        "called at: JSONRPC 1.0 http://ADDRESS/a2a/echo",
        "  JSONRPC 1.0 http://ADDRESS/a2a/echo",
        "skills:",
    ] {
        assert!(shown.lines().any(|shown| shown == line), "no {line:?} in\n{shown}");
    }
    assert!(!shown.contains("problems:"), "{shown}");
    let json = fleet.run(&["card", "get", "-a", "echo", "-o", "json"]).json();
    assert_eq!((&json["name"], json["skills"].is_array()), (&Value::from("Echo"), true), "{json}");
    let extended = fleet.run(&["card", "echo", "--extended", "--json"]);
    let error = &extended.json()["error"];
    assert_eq!((extended.code, &error["code"]), (Some(1), &Value::from("UnsupportedOperationError")));

    let skills = fleet.run(&["skills", "probe"]);
    assert!(
        skills.stdout.contains("stream: Stream - N chunks as fast as possible\n  say: stream:100\n"),
        "{}",
        skills.stdout
    );
    let skills = fleet.run(&["skills", "probe", "--json"]).json();
    assert_eq!(skills["skills"][1]["id"], "hello", "{skills}");
}

#[test]
fn a_card_in_a_file_is_as_good_as_one_that_is_fetched() {
    let fleet = Fleet::new();
    let card = fleet.run(&["card", "echo", "--json"]).stdout;
    let path = fleet.workspace.path().join("card.json");
    std::fs::write(&path, &card).unwrap();
    let url = format!("file://{}", path.display());
    for named in ["card.json", "./card.json", path.to_str().unwrap(), &url] {
        assert_eq!(fleet.run(&["card", named, "--json"]).json(), serde_json::from_str::<Value>(&card).unwrap());
        let run = fleet.run(&["send", "-a", named, "hi", "-q"]);
        assert_eq!((run.code, run.stdout.as_str()), (Some(0), "hi\n"), "{named}: {}", run.stderr);
    }
    let endpoint = format!("http://{}/a2a/probe", fleet.server.address);
    let elsewhere = fleet.run(&["send", "card.json", "message", "-q", "--endpoint", &endpoint]);
    assert_eq!(elsewhere.stdout, "a direct message\n", "{}", elsewhere.stderr);

    std::fs::write(&path, r#"{"name":"Half","supportedInterfaces":[],"skills":[]}"#).unwrap();
    let half = fleet.run(&["card", "card.json", "--validate", "--json"]);
    assert_eq!((half.code, &half.json()["error"]["code"]), (Some(1), &json!("A2ACLI_ERR_CARD_INVALID")));
    assert!(half.stdout.contains("no description") && half.stdout.contains("lists none"), "{}", half.stdout);
    let text = fleet.run(&["card", "card.json", "--validate"]);
    assert!(text.code == Some(1) && text.stdout.contains("\nproblems:\n"), "{}", text.stdout);
    let good = fleet.run(&["card", "echo", "--validate"]);
    assert!(good.code == Some(0) && good.stdout.ends_with("\nproblems: none\n"), "{}", good.stdout);
    std::fs::write(&path, "no card").unwrap();
    let refused = |name: &str| {
        let run = fleet.run(&["card", name, "--json"]);
        (run.code, run.json()["error"]["code"].as_str().unwrap().to_owned())
    };
    assert_eq!(refused("card.json"), (Some(1), "A2ACLI_ERR_CARD_INVALID".to_owned()));
    assert_eq!(refused("./nothing.json"), (Some(3), "A2ACLI_ERR_CARD_NOT_FOUND".to_owned()));
    assert_eq!(refused("file:///nothing.json"), (Some(3), "A2ACLI_ERR_CARD_NOT_FOUND".to_owned()));
}
