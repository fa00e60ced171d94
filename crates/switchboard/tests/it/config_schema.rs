//! `config schema`: accepts what is documented, and what is in force by default, and refuses what the reader refuses.

use serde_json::{Value, json};

use crate::program::Workspace;
use crate::tls::Issued;

/// Every key of `switchboard.yaml`, with the values the documentation shows.
const SWITCHBOARD: &str = include_str!("documented/switchboard.yaml");
const AGENTS: &str = include_str!("documented/agents.yaml");
/// The file that one of them names.
const AIDER: &str = include_str!("../../../cli-agents/tests/declarations/aider.yaml");

fn schema(arguments: &[&str]) -> jsonschema::Validator {
    let run = Workspace::new().run(arguments);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    jsonschema::validator_for(&run.json()).unwrap()
}

/// A file as an editor reads it: in YAML 1.2 `off`, `y` and `n` are text.
fn yaml(source: &str) -> Value {
    serde_saphyr::from_str_with_options(source, serde_saphyr::options! { strict_booleans: true }).unwrap()
}

fn errors(schema: &jsonschema::Validator, document: &Value) -> Vec<String> {
    schema.iter_errors(document).map(|error| format!("{}: {error}", error.instance_path())).collect()
}

#[test]
fn the_documented_switchboard_file_fits_its_schema() {
    let schema = schema(&["config", "schema"]);
    let documented: Value = yaml(SWITCHBOARD);
    assert_eq!(errors(&schema, &documented), [""; 0]);
    let defaults = serde_json::to_value(switchboard_host::config::Config::default()).unwrap();
    assert_eq!(errors(&schema, &defaults), [""; 0]);
    for wrong in [
        json!({ "models": { "small": {} } }),
        json!({ "models": { "small": { "model": "", "price": { "input": 1, "output": 1 } } } }),
        json!({ "server": { "bnid": "127.0.0.1:1" } }),
        json!({ "serverr": {} }),
        json!({ "tasks": { "drain": 10 } }),
        json!({ "tasks": { "drain": "none" } }),
        json!({ "limits": { "runningTasks": 0 } }),
        json!({ "limits": { "event": "8MB" } }),
        json!({ "log": { "level": "loud" } }),
    ] {
        assert!(!errors(&schema, &wrong).is_empty(), "{wrong}");
    }
}

#[test]
fn the_documented_agents_file_fits_its_schema() {
    let schema = schema(&["config", "schema", "agents"]);
    let documented: Value = yaml(AGENTS);
    assert_eq!(errors(&schema, &documented), [""; 0]);
    for wrong in [
        json!({ "agents": [{ "builtin": "echo" }] }),
        json!({ "agents": [{ "name": "echo" }] }),
        json!({ "agents": [{ "name": "tasks", "builtin": "echo" }] }),
        json!({ "agents": [{ "name": "Echo", "builtin": "echo" }] }),
        json!({ "agents": [{ "name": "echo", "builtin": "echo", "skills": [{ "name": "x" }] }] }),
        json!({ "agents": [{ "name": "echo", "builtin": "echo", "origin": "here" }] }),
        json!({ "agents": [{ "name": "echo", "builtin": "echo", "cwd": "." }] }),
        json!({ "agents": [{ "name": "a", "cli": "claude" }] }),
        json!({ "agents": [{ "name": "a", "cli": "codex", "modle": "large" }] }),
        json!({ "agents": [{ "name": "a", "cli": "codex", "maxParallel": 0 }] }),
        json!({ "agents": [{ "name": "a", "cli": "codex", "timeout": "0.5h" }] }),
        json!({ "agents": [{ "name": "a", "cli": "codex", "env": ["KEY=value"] }] }),
        json!({ "agents": [{ "name": "a", "cli": "codex", "permissions": { "allow": [""] } }] }),
        json!({ "agents": [{ "name": "a", "cli": "codex", "profiles": { "complex": {}, "mid": {} } }] }),
        json!({ "agents": [{ "name": "a", "cli": "codex", "profiles": { "complex": {}, "mid": {}, "easy": {} } }] }),
        json!({ "agents": [{ "name": "a", "cli": "acp", "command": [] }] }),
        json!({ "agents": [{ "name": "a", "cli": "generic", "command": ["a"], "approval": {} }] }),
        json!({ "agents": [{ "name": "a", "cli": "generic", "command": ["a"], "approval": { "pattern": "x", "events": true } }] }),
        json!({ "agents": [{ "name": "a", "cli": "codex", "permissions": { "allow": ["Bash(git"] } }] }),
        json!({ "agents": [{ "name": "a", "cli": "codex", "separator": "--" }] }),
    ] {
        assert!(!errors(&schema, &wrong).is_empty(), "{wrong}");
    }
}

#[test]
fn the_documented_files_are_read_and_hold_the_defaults() {
    let issued = Issued::new();
    let workspace = Workspace::new()
        .file("switchboard.yaml", SWITCHBOARD)
        .file("agents.yaml", AGENTS)
        .file("adapters/aider.yaml", AIDER)
        .file("cert.pem", &issued.certificate_pem)
        .file("key.pem", &issued.key_pem);
    let documented = workspace.good();
    let defaults = Workspace::new().good();
    let shown = [
        "server.publicBaseUrl",
        "server.internalBaseUrl",
        "server.defaultAgent",
        "server.tls.cert",
        "server.tls.key",
        "models",
    ];
    let mut compared = 0;
    for setting in defaults.json()["settings"].as_array().unwrap() {
        let key = setting["key"].as_str().unwrap();
        let (value, origin) = documented.setting(key);
        assert_eq!(origin["from"], "file", "{key} is not documented");
        if !shown.contains(&key) {
            assert_eq!(value, setting["value"], "{key} is documented with another default");
            compared += 1;
        }
    }
    assert!(compared > 40, "{compared}");
    let agents = documented.json()["agents"].clone();
    assert_eq!((&agents[0]["name"], &agents[1]["skills"][0]["name"]), (&json!("echo"), &json!("pr_review")));
}

#[test]
fn the_documented_command_line_agents_show_every_key_and_its_default() {
    let documented: Value = yaml(AGENTS);
    let documented: Vec<&Value> =
        documented["agents"].as_array().unwrap().iter().filter(|agent| agent["cli"].is_string()).collect();
    let schema = Workspace::new().run(&["config", "schema", "agents"]).json();
    for (definition, place) in [
        ("CliAgent", ""),
        ("Permissions", "/permissions"),
        ("SkillPermissions", "/skills/0/permissions"),
        ("OutputLimits", "/limits"),
        ("Approval", "/approval"),
        ("Profiles", "/profiles"),
        ("Profile", "/profiles/routine"),
    ] {
        let keys = schema["$defs"][definition]["properties"].as_object().unwrap().keys();
        for key in keys {
            let shown = documented.iter().any(|agent| agent.pointer(&format!("{place}/{key}")).is_some());
            assert!(shown, "{place}/{key} is not documented");
        }
    }
    let workspace = Workspace::new().file("agents.yaml", AGENTS).file("adapters/aider.yaml", AIDER);
    let read = workspace.good().json()["agents"].clone();
    let spelled_out = &read[2];
    assert_eq!(read[5]["approval"], json!({ "pattern": "\\[y/N\\] *$", "yes": "y", "no": "n", "events": false }));
    let workspace = Workspace::new().file("agents.yaml", "agents:\n  - { name: coder, cli: claude-code }\n");
    let defaults = workspace.good().json()["agents"][0].clone();
    assert_eq!(spelled_out["name"], "coder");
    for (key, value) in defaults.as_object().unwrap() {
        if !["origin", "cwd"].contains(&key.as_str()) {
            assert_eq!(&spelled_out[key], value, "{key} is documented with another default");
        }
    }
    let capitals = json!({ "COMPLEX": {}, "MID": { "model": "m" }, "ROUTINE": {} });
    let fine = json!({ "agents": [{ "name": "a", "cli": "codex", "profiles": capitals }, defaults_without_origin(&defaults)] });
    assert_eq!(errors(&jsonschema::validator_for(&schema).unwrap(), &fine), [""; 0]);
}

/// What is in force, as it could stand in a file.
fn defaults_without_origin(agent: &Value) -> Value {
    let mut agent = agent.clone();
    agent.as_object_mut().unwrap().remove("origin");
    agent
}
