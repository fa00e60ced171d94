//! `config check` on configurations that are good: who decides what, and what it says of it.

use serde_json::json;

use crate::program::Workspace;

#[test]
fn an_empty_folder_is_a_workspace_with_the_demo_fleet() {
    let workspace = Workspace::new();
    let answer = workspace.good().json();
    assert_eq!((&answer["ok"], &answer["files"], &answer["demo"]), (&json!(true), &json!([]), &json!(true)));
    let names: Vec<&str> =
        answer["agents"].as_array().unwrap().iter().map(|agent| agent["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["echo", "guide", "probe"]);
    let text = workspace.run(&["config", "check"]);
    assert!(text.stdout.contains("no configuration files"), "{}", text.stdout);
    assert!(text.stdout.ends_with("the configuration is good\n"), "{}", text.stdout);
    assert!(!text.stdout.contains('\u{1b}') && text.stderr.is_empty());
}

#[test]
fn flags_stand_above_the_environment_above_the_file_above_the_default() {
    let key = "server.bind";
    let workspace = Workspace::new();
    assert_eq!(workspace.good().setting(key), (json!("127.0.0.1:41242"), json!({ "from": "default" })));
    let workspace = workspace.file("switchboard.yaml", "server:\n  bind: 127.0.0.1:1\nstore: { dataDir: data }\n");
    let from_file = json!({ "from": "file", "file": "switchboard.yaml", "line": 2 });
    assert_eq!(workspace.good().setting(key), (json!("127.0.0.1:1"), from_file));
    let workspace = workspace.variable("SWITCHBOARD_SERVER_BIND", "127.0.0.1:2");
    let from_environment = json!({ "from": "environment", "variable": "SWITCHBOARD_SERVER_BIND" });
    assert_eq!(workspace.good().setting(key), (json!("127.0.0.1:2"), from_environment));
    let run = workspace.run(&["config", "check", "-o", "json", "--bind", "127.0.0.1:3", "--data-dir", "elsewhere"]);
    assert_eq!(run.setting(key), (json!("127.0.0.1:3"), json!({ "from": "flag", "flag": "--bind" })));
    let (data_dir, _) = run.setting("store.dataDir");
    assert_eq!(data_dir, json!(workspace.path().canonicalize().unwrap().join("elsewhere")));
}

#[test]
fn every_scalar_key_can_be_set_from_the_environment() {
    let workspace = Workspace::new()
        .variable("SWITCHBOARD_STORE_DATA_DIR", "/var/lib/switchboard")
        .variable("SWITCHBOARD_STORE_RETENTION_MAX_AGE", "1d")
        .variable("SWITCHBOARD_LIMITS_RUNNING_TASKS", "7")
        .variable("SWITCHBOARD_SERVER_STRICT_VERSION", "true")
        .variable("SWITCHBOARD_SERVER_ALLOWED_ORIGINS", "https://a.example, https://b.example")
        .variable("SWITCHBOARD_CARDS_DEFAULT", "v1")
        .variable("SWITCHBOARD_TASKS_IDLE", "5m")
        .variable("SWITCHBOARD_LOG_FORMAT", "");
    let run = workspace.good();
    assert_eq!(run.setting("store.dataDir").0, "/var/lib/switchboard");
    assert_eq!(run.setting("store.retention.maxAge").0, "1d");
    assert_eq!(run.setting("limits.runningTasks").0, 7);
    assert_eq!(run.setting("server.strictVersion").0, true);
    assert_eq!(run.setting("server.allowedOrigins").0, json!(["https://a.example", "https://b.example"]));
    assert_eq!(run.setting("cards.default").0, "v1");
    assert_eq!(run.setting("tasks.idle").0, "5m");
    assert_eq!(run.setting("log.format"), (json!("text"), json!({ "from": "default" })), "empty counts as absent");
}

#[test]
fn a_variable_that_sets_nothing_and_a_misspelled_file_are_warned_of() {
    let workspace = Workspace::new()
        .file("agents.yml", "agents: []\n")
        .file("Agents.yaml", "agents: []\n")
        .file("Switchboard.YML", "")
        .variable("SWITCHBOARD_SERVER_BNID", "127.0.0.1:1")
        .variable("SWITCHBOARD_SERVER_SERVICE_PORT", "80")
        .variable("SWITCHBOARD_API_KEY", "of another program")
        .variable("SWITCHBOARD_SERVR_BIND", "127.0.0.1:1")
        .variable("SWITCHBOARD_STORE", ".")
        .variable("SWITCHBOARDS_SERVER_BIND", "no name of ours");
    let warnings = [
        "Switchboard.YML is not read: rename it to switchboard.yaml",
        "Agents.yaml is not read: rename it to agents.yaml",
        "agents.yml is not read: rename it to agents.yaml",
        "the environment variable SWITCHBOARD_API_KEY sets nothing: no setting has that name: remove it",
        "the environment variable SWITCHBOARD_SERVER_BNID sets nothing: did you mean SWITCHBOARD_SERVER_BIND?",
        "the environment variable SWITCHBOARD_SERVER_SERVICE_PORT sets nothing: no setting has that name: remove it",
        "the environment variable SWITCHBOARD_SERVR_BIND sets nothing: did you mean SWITCHBOARD_SERVER_BIND?",
        "the environment variable SWITCHBOARD_STORE sets nothing: no setting has that name: remove it",
    ];
    assert_eq!(workspace.good().json()["warnings"], json!(warnings));
    let text = workspace.run(&["config", "check"]);
    assert_eq!(text.code, Some(0));
    for warning in warnings {
        assert!(text.stderr.contains(&format!("warning: {warning}")), "{}", text.stderr);
    }
}

#[test]
fn a_default_agent_that_no_file_has_is_warned_of() {
    let workspace = Workspace::new().file("switchboard.yaml", "server: { defaultAgent: prob }\n");
    let warning = "switchboard.yaml:1: server.defaultAgent: no file has an agent \"prob\", it has to be registered: did \
                   you mean probe?";
    assert_eq!(workspace.good().json()["warnings"], json!([warning]));
}

#[test]
fn variables_that_have_another_use_are_not_warned_of() {
    let workspace = Workspace::new()
        .file("switchboard.yaml", "server:\n  publicBaseUrl: ${SWITCHBOARD_URL}\n")
        .file("agents.d/a.yaml", "agents:\n  - { name: \"${SWITCHBOARD_AGENT:-one}\", builtin: echo }\n")
        .variable("SWITCHBOARD_WORKSPACE", ".")
        .variable("SWITCHBOARD_URL", "https://agents.example.com")
        .variable("SWITCHBOARD_AGENT", "two")
        .variable("SWITCHBOARD_SERVICE_HOST", "10.0.0.1")
        .variable("SWITCHBOARD_PORT", "tcp://10.0.0.1:80")
        .variable("SWITCHBOARD_PORT_80_TCP_ADDR", "10.0.0.1");
    let answer = workspace.good().json();
    assert_eq!(answer["agents"][0]["name"], "two");
    assert_eq!(answer["warnings"], json!([]));
}

#[test]
fn variables_are_filled_in_when_a_file_is_loaded() {
    let workspace = Workspace::new()
        .file(
            "switchboard.yaml",
            "server:\n  publicBaseUrl: https://${HOST}/fleet\n  bind: \"127.0.0.1:${PORT:-7}\"\nlimits:\n  streams: ${STREAMS}\n",
        )
        .file("agents.yaml", "agents:\n  - { name: \"${WHO:-echo}\", builtin: echo, description: 'a $${literal}' }\n")
        .variable("HOST", "agents.example.com")
        .variable("STREAMS", "12");
    let run = workspace.good();
    assert_eq!(run.setting("server.publicBaseUrl").0, "https://agents.example.com/fleet");
    assert_eq!(run.setting("server.bind").0, "127.0.0.1:7");
    assert_eq!(run.setting("limits.streams").0, 12);
    assert_eq!(run.json()["agents"][0]["name"], "echo");
    assert_eq!(run.json()["agents"][0]["description"], "a ${literal}");
}

#[test]
fn agents_come_from_all_files_in_order() {
    let workspace = Workspace::new()
        .file(
            "agents.yaml",
            "agents:\n  - name: one\n    builtin: echo\n    v03: { blocking: return, closeOnInterrupt: false, restFiles: twice }\n",
        )
        .file(
            "agents.d/20-b.yaml",
            "agents:\n  - { name: three, builtin: probe, streams: { closeOnInputRequired: false } }\n",
        )
        .file("agents.d/10-a.yml", "agents:\n  - { name: two, builtin: guide, dedupeMessageId: true }\n")
        .file("agents.d/README.md", "not: [an agent\n")
        .file("agents.d/.30-c.yaml", "not: [an agent\n")
        .file("switchboard.yaml", "server: { defaultAgent: two }\n");
    let answer = workspace.good().json();
    assert_eq!(answer["files"], json!(["switchboard.yaml", "agents.yaml", "agents.d/10-a.yml", "agents.d/20-b.yaml"]));
    let agents = &answer["agents"];
    assert_eq!(json!([agents[0]["name"], agents[1]["name"], agents[2]["name"]]), json!(["one", "two", "three"]));
    assert_eq!(agents[0]["v03"], json!({ "blocking": "return", "closeOnInterrupt": false, "restFiles": "twice" }));
    assert_eq!(agents[1]["dedupeMessageId"], true);
    assert_eq!(agents[1]["v03"], json!({ "blocking": "block", "closeOnInterrupt": true, "restFiles": "auto" }));
    assert_eq!(agents[2]["streams"], json!({ "closeOnInputRequired": false }));
    assert_eq!(agents[2]["origin"], json!({ "from": "file", "file": "agents.d/20-b.yaml", "line": 2 }));
    assert_eq!(answer["demo"], false);
}

#[test]
fn the_workspace_folder_can_be_named() {
    let workspace = Workspace::new().file("fleet/switchboard.yaml", "log: { level: debug }\n");
    let run = workspace.run(&["config", "check", "-o", "json", "--workspace", "fleet"]);
    let origin = json!({ "from": "file", "file": "fleet/switchboard.yaml", "line": 1 });
    assert_eq!(run.setting("log.level"), (json!("debug"), origin));
    let workspace = workspace.variable("SWITCHBOARD_WORKSPACE", "fleet");
    assert_eq!(workspace.good().setting("log.level").0, "debug");
}

#[test]
fn what_is_configured_in_vain_is_said_by_every_command() {
    let workspace = Workspace::new()
        .file("agents.yaml", "agents: []\n")
        .file("agent.yml", "agents: []\n")
        .file("switchboard.json", "{}")
        .file("agents.d/one.json", "{}")
        .file("agents.d/README.md", "")
        .variable("SWITCHBOARD_SERVER_BIND", &crate::calling::free_address())
        .variable("SWITCHBOARD_STORE_DATA_DRI", "elsewhere");
    let unread = [
        "switchboard.json is not read: rename it to switchboard.yaml",
        "agent.yml is not read: rename it to agents.yaml",
        "agents.d/one.json is not read: end its name in .yaml",
        "the environment variable SWITCHBOARD_STORE_DATA_DRI sets nothing: did you mean SWITCHBOARD_STORE_DATA_DIR?",
    ];
    let empty =
        "agents.yaml lists no agent, so that the demo agents are served: write them under agents, or remove the file";
    let warnings = |stderr: &str| -> Vec<String> {
        stderr.lines().filter_map(|line| line.strip_prefix("warning: ")).map(str::to_owned).collect()
    };
    let checked = workspace.run(&["config", "check"]);
    assert_eq!(warnings(&checked.stderr), [&unread[..], &[empty]].concat());
    assert!(checked.stdout.ends_with("the configuration can be used, but for 5 things that are warned of\n"));
    for command in [&["agents"][..], &["keys", "list"], &["status"], &["send", "missing", "hi"]] {
        let run = workspace.run(command);
        assert_eq!(warnings(&run.stderr), unread, "{command:?}: {}", run.stderr);
    }
}

#[test]
fn a_listener_that_other_machines_reach_without_tls_is_warned_of() {
    let warned = |settings: &str| {
        let run = Workspace::new().file("switchboard.yaml", settings).good();
        run.json()["warnings"].as_array().unwrap().iter().any(|warning| warning.to_string().contains("in plain text"))
    };
    assert!(warned("server: { bind: '0.0.0.0:41242' }"));
    assert!(warned("server: { bind: '[::]:41242' }"));
    assert!(warned("server: { bind: '192.0.2.7:41242', publicBaseUrl: 'http://agents.example' }"));
    assert!(!warned("server: { bind: '0.0.0.0:41242', publicBaseUrl: 'https://agents.example' }"));
    assert!(!warned("server: { bind: '127.0.0.1:41243' }"));
}
