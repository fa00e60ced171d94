//! Settings of calls: flags over the environment over the named file over the user's own, and who decides is shown.

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use super::Fleet;
use crate::program::{Run, Workspace};

/// Value and source of a setting.
fn shown(run: &Run, name: &str) -> (Value, Value) {
    let settings = run.json()["settings"].clone();
    let setting = settings.as_array().unwrap().iter().find(|setting| setting["name"] == name).unwrap();
    (setting["value"].clone(), setting["source"].clone())
}

#[test]
fn the_nearer_one_wins_and_is_named() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join(".config/a2a-cli");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join(".env"), "A2ACLI_TIMEOUT=1m\nA2ACLI_TENANT=ours\nA2ACLI_BEARER=hunter2\n").unwrap();
    let workspace = Workspace::new()
        .variable("HOME", home.path().to_str().unwrap())
        .file("set.env", "OTHER=1\nA2ACLI_TIMEOUT=2m\nA2ACLI_A2A_VERSION='0.3' # old\nA2ACLI_INSECURE=1\n")
        .file("named.env", "A2ACLI_TIMEOUT=3m\n");
    let show = |arguments: &[&str]| workspace.run(&[&["config", "show", "-o", "json"], arguments].concat());
    let run = show(&["--config", "set.env"]);
    let (local, global) = (json!("set.env"), json!(folder.join(".env")));
    assert_eq!(shown(&run, "timeout"), (json!("2m"), local.clone()), "{}", run.stdout);
    assert_eq!(shown(&run, "a2a-version"), (json!("0.3"), local.clone()));
    assert_eq!(shown(&run, "insecure"), (json!("1"), local.clone()));
    assert_eq!(shown(&run, "tenant"), (json!("ours"), global.clone()));
    assert_eq!(shown(&run, "bearer"), (json!("***"), global));
    assert_eq!(shown(&run, "verbose"), (json!("false"), json!("default")));
    let warning = "holds a secret and others on this machine can read it: chmod 600";
    assert!(run.stderr.contains(warning) && !run.stderr.contains("hunter2"), "{}", run.stderr);
    std::fs::set_permissions(folder.join(".env"), std::fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(show(&["--config", "set.env"]).stderr, "");

    let run = show(&["--timeout", "5m", "--config", "named.env"]);
    assert_eq!(shown(&run, "timeout"), (json!("5m"), json!("flag --timeout")));
    assert_eq!(shown(&run, "insecure"), (json!("false"), json!("default")), "one file is named at a time");
    assert_eq!(shown(&show(&["--config", "named.env"]), "timeout"), (json!("3m"), json!("named.env")));
    let workspace = workspace
        .variable("A2ACLI_TIMEOUT", "4m")
        .variable("A2ACLI_API_KEY", "hunter2")
        .variable("A2ACLI_ENDPOINT", "https://me:hunter2@agent.example/a2a?key=hunter2");
    let run = workspace.run(&["config", "show", "-o", "json"]);
    assert_eq!(shown(&run, "endpoint").0, json!("https://***@agent.example/a2a?…"));
    assert_eq!(shown(&run, "timeout"), (json!("4m"), json!("variable A2ACLI_TIMEOUT")));
    assert!(!run.stdout.contains("hunter2"), "{}", run.stdout);
    let help = workspace.run(&["send", "--help"]);
    assert!(!help.stdout.contains("hunter2"), "{}", help.stdout);
}

#[test]
fn what_a_file_says_is_done() {
    let fleet = Fleet::new();
    let key = fleet.run(&["keys", "create", "--json"]).json()["key"]["secret"].as_str().unwrap().to_owned();
    let url = format!("http://{}/a2a/echo", fleet.server.address);
    let settings = format!(
        "A2ACLI_AGENT_CARD={url}\nA2ACLI_BEARER={key}\nA2ACLI_OUTPUT=json\nA2ACLI_TRANSPORT=http+json,jsonrpc\n"
    );
    let caller = Workspace::new().file("set.env", settings).variable("A2ACLI_CONFIG", "set.env");
    std::fs::set_permissions(caller.path().join("set.env"), std::fs::Permissions::from_mode(0o600)).unwrap();
    let run = caller.run(&["send", "two", "words"]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{}", run.stdout);
    assert_eq!(run.json()["task"]["artifacts"][0]["parts"], json!([{ "text": "two words" }]));
    assert_eq!(caller.run(&["send", "hi", "-o", "text", "-q"]).stdout, "hi\n", "a flag wins");
    let caller = caller.variable("A2ACLI_ASYNC", "1");
    let probe = format!("http://{}/a2a/probe", fleet.server.address);
    let begun = caller.run(&["send", "-a", &probe, "hold"]);
    assert_eq!((begun.code, begun.json()["task"]["id"].is_string()), (Some(0), true), "{}", begun.stdout);
    let waited = caller.run(&["send", "-a", &probe, "hold", "--wait", "--timeout", "300ms"]);
    assert_eq!(waited.code, Some(5), "{}", waited.stdout);
}

#[test]
fn what_is_wrong_in_a_file_is_said_with_its_name() {
    let workspace = Workspace::new().file("bad.env", "A2ACLI_TIMEOUT=soon\n");
    let refused = |arguments: &[&str]| {
        let run = workspace.run(&[arguments, &["--json"]].concat());
        assert_eq!(run.code, Some(2), "{}{}", run.stdout, run.stderr);
        run.json()["error"]["message"].as_str().unwrap().to_owned()
    };
    let message = refused(&["send", "echo", "hi", "--config", "bad.env"]);
    assert!(message.starts_with("bad.env: invalid value 'soon' for '--timeout <TIME>'"), "{message}");
    let message = refused(&["card", "echo", "--config", "not-there.env"]);
    assert!(message.starts_with("not-there.env cannot be read"), "{message}");
}

#[test]
fn what_says_nothing_is_told() {
    let fleet = Fleet::new();
    for (name, value, right) in [
        ("A2ACLI_ASYNC", "maybe", "write true or false"),
        ("A2ACLI_INSECURE", "maybe", "write true or false"),
        ("A2ACLI_OUTPUT", "xml", "write text or json"),
        ("A2ACLI_TIMEOUT", "soon", "write a number with a unit"),
    ] {
        let variable = Workspace::new().variable(name, value);
        let file = Workspace::new().file("set.env", format!("{name}={value}\n"));
        for run in [
            variable.run(&["send", "http://127.0.0.1:1", "hi"]),
            file.run(&["send", "http://127.0.0.1:1", "hi", "--config", "set.env"]),
        ] {
            assert!(run.code == Some(2) && run.stderr.contains(right), "{name}: {}", run.stderr);
            let place = if run.stderr.contains("set.env") { "set.env" } else { name };
            assert!(run.stderr.contains(place) && run.stderr.contains(value), "{name}: {}", run.stderr);
        }
    }
    let settings = "OTHER=1\nno such line\nA2ACLI_TENNANT=x\nA2ACLI_CONFIG=named.env\nA2ACLI_OUTPUT=json\n";
    let caller = Workspace::new().file("set.env", settings).file("named.env", "A2ACLI_TENANT=named\n");
    let url = format!("http://{}/a2a/echo", fleet.server.address);
    let run = caller.run(&["send", &url, "hi", "-q", "--config", "set.env"]);
    assert_eq!(run.stdout, "hi\n", "a flag wins over what is set for the form");
    let file = "set.env";
    let expected = format!(
        "warning: {file}:2 is passed over: write NAME=value\n\
         warning: {file}:4 sets A2ACLI_CONFIG, which has no effect: only --config and the environment say which file counts\n\
         warning: {file}:3 sets A2ACLI_TENNANT, which has no effect: did you mean A2ACLI_TENANT?\n"
    );
    assert_eq!(run.stderr, expected);
    let settings = "# a comment\nexport A2ACLI_BEARER='a # b'\nA2ACLI_TIMEOUT = 30s # soon\nPATH=/bin\nA2ACLI_TENANT=\"x=y\"\n\
                    A2ACLI_ENDPOINT=\nnonsense\nmore of it\n";
    let as_shells =
        Workspace::new().file("set.env", settings).run(&["config", "show", "-o", "json", "--config", "set.env"]);
    for (name, value) in [("timeout", json!("30s")), ("tenant", json!("x=y")), ("endpoint", Value::Null)] {
        assert_eq!(shown(&as_shells, name).0, value, "{name}");
    }
    let quoted = Workspace::new().file("set.env", "A2ACLI_TENANT='a # b'\n");
    assert_eq!(shown(&quoted.run(&["config", "show", "-o", "json", "--config", "set.env"]), "tenant").0, "a # b");
    assert_eq!(shown(&as_shells, "bearer"), (json!("***"), json!("set.env")));
    assert!(as_shells.stderr.contains("set.env:7 is passed over") && !as_shells.stderr.contains("set.env:8"));
    let shown_now = caller.variable("A2ACLI_FLOW", "device-code").run(&["config", "show", "--config", "set.env"]);
    assert_eq!(shown(&shown_now, "flow"), (json!("device-code"), json!("variable A2ACLI_FLOW")));
    assert_eq!(shown(&shown_now, "tenant"), (Value::Null, json!("default")), "{}", shown_now.stdout);
    assert_eq!(shown_now.json()["files"], json!([file]));
}
