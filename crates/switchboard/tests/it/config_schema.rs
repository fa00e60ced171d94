//! `config schema`: accepts what is documented, and what is in force by default, and refuses what the reader refuses.

use serde_json::{Value, json};

use crate::program::Workspace;
use crate::tls::Issued;

/// Every key of `switchboard.yaml`, with the values the documentation shows.
const SWITCHBOARD: &str = include_str!("documented/switchboard.yaml");
const AGENTS: &str = include_str!("documented/agents.yaml");

fn schema(arguments: &[&str]) -> jsonschema::Validator {
    let run = Workspace::new().run(arguments);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    jsonschema::validator_for(&run.json()).unwrap()
}

fn errors(schema: &jsonschema::Validator, document: &Value) -> Vec<String> {
    schema.iter_errors(document).map(|error| format!("{}: {error}", error.instance_path())).collect()
}

#[test]
fn the_documented_switchboard_file_fits_its_schema() {
    let schema = schema(&["config", "schema"]);
    let documented: Value = serde_saphyr::from_str(SWITCHBOARD).unwrap();
    assert_eq!(errors(&schema, &documented), [""; 0]);
    let defaults = serde_json::to_value(switchboard::config::Config::default()).unwrap();
    assert_eq!(errors(&schema, &defaults), [""; 0]);
    for wrong in [
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
    let documented: Value = serde_saphyr::from_str(AGENTS).unwrap();
    assert_eq!(errors(&schema, &documented), [""; 0]);
    for wrong in [
        json!({ "agents": [{ "builtin": "echo" }] }),
        json!({ "agents": [{ "name": "echo" }] }),
        json!({ "agents": [{ "name": "tasks", "builtin": "echo" }] }),
        json!({ "agents": [{ "name": "Echo", "builtin": "echo" }] }),
        json!({ "agents": [{ "name": "echo", "builtin": "echo", "skills": [{ "name": "x" }] }] }),
        json!({ "agents": [{ "name": "echo", "builtin": "echo", "origin": "here" }] }),
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
        .file("cert.pem", &issued.certificate_pem)
        .file("key.pem", &issued.key_pem);
    let documented = workspace.good();
    let defaults = Workspace::new().good();
    let shown = ["server.publicBaseUrl", "server.defaultAgent", "server.tls.cert", "server.tls.key"];
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
