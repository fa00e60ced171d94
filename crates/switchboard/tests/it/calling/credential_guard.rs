//! Credentials go where their user meant them to go, whatever a file in the current folder says.

use std::sync::mpsc::{Receiver, channel};

use serde_json::{Value, json};

use super::{answering, card};
use crate::program::{Run, Workspace};

/// An agent that says hello and records the credentials of its requests.
struct Listener {
    address: String,
    shown: Receiver<String>,
}

impl Listener {
    fn start() -> Self {
        let (send, shown) = channel();
        let address = answering(move |here, heard| {
            if heard.path.ends_with("agent-card.json") {
                return (200, card(here, json!({})));
            }
            let _ = send.send(heard.header("authorization").to_owned());
            let asked: Value = serde_json::from_str(&heard.body).unwrap();
            let reply =
                json!({ "message": { "messageId": "m", "role": "ROLE_AGENT", "parts": [{ "text": "hello" }] } });
            (200, json!({ "jsonrpc": "2.0", "id": asked["id"], "result": reply }))
        });
        Self { address, shown }
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What it was shown since the last time.
    fn shown(&self) -> Vec<String> {
        self.shown.try_iter().collect()
    }
}

#[track_caller]
fn refused(run: &Run, words: &[&str]) {
    let error = run.json()["error"].clone();
    assert_eq!((run.code, &error["code"]), (Some(2), &json!("A2ACLI_ERR_USAGE")), "{error}");
    let told = format!("{} {}", error["message"].as_str().unwrap(), error["hint"].as_str().unwrap());
    assert!(words.iter().all(|word| told.contains(word)) && !told.contains("hunter2"), "{words:?}: {told}");
}

#[test]
fn a_file_that_was_not_named_decides_nothing() {
    let (meant, stranger) = (Listener::start(), Listener::start());
    let set = format!("A2ACLI_ENDPOINT={}\nA2ACLI_AGENT_CARD={0}\n", stranger.url());
    let workspace = Workspace::new().file(".env", &set).variable("A2ACLI_BEARER", "hunter2");
    let run = workspace.run(&["send", &meant.url(), "hi", "-q"]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), "hello\n"), "{}", run.stderr);
    let file = workspace.path().canonicalize().unwrap().join(".env");
    let file = file.display();
    let warning = format!("{file} has settings and is not read: name it with --config {file}, or in A2ACLI_CONFIG");
    assert!(run.stderr.contains(&warning), "{}", run.stderr);
    assert_eq!((meant.shown(), stranger.shown().len()), (vec!["Bearer hunter2".to_owned()], 0));
    let named = workspace.run(&["send", "hi", "-q", "--config", ".env"]);
    assert_eq!((named.code, named.stderr.as_str()), (Some(0), ""));
    assert_eq!((meant.shown().len(), stranger.shown()), (0, vec!["Bearer hunter2".to_owned()]));
    let endless = Workspace::new();
    std::os::unix::fs::symlink("/dev/zero", endless.path().join(".env")).unwrap();
    let run = endless.run(&["send", &meant.url(), "hi", "-q"]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "a device has no end and is not opened");
    let unrelated = Workspace::new().file(".env", "OTHER=1\n").run(&["send", &meant.url(), "hi", "-q"]);
    assert_eq!((unrelated.code, unrelated.stderr.as_str()), (Some(0), ""));
}

#[test]
fn a_word_besides_the_agent_of_a_variable_is_refused() {
    let set = Workspace::new().variable("A2ACLI_AGENT_CARD", "echo").run(&["card", "probe", "--json"]);
    refused(&set, &["too many words", "A2ACLI_AGENT_CARD", "(echo)"]);
}

#[test]
fn what_is_kept_for_an_agent_goes_to_its_host() {
    let (meant, other) = (Listener::start(), Listener::start());
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join(".config/a2a-cli");
    std::fs::create_dir_all(&folder).unwrap();
    let token = json!({
        "agent": meant.url(), "flow": "device-code", "tokenUrl": meant.url(), "clientId": "app", "scopes": [],
        "accessToken": "hunter2",
    });
    std::fs::write(folder.join("tokens.json"), json!({ "tokens": [token] }).to_string()).unwrap();
    let agents = format!("agents: [{{ name: there, url: '{}', bearerEnv: TOKEN }}]\n", meant.url());
    let caller = || {
        let workspace = Workspace::new().file("agents.yaml", &agents).variable("TOKEN", "hunter2");
        workspace.variable("HOME", home.path().to_str().unwrap())
    };
    let named = [("there", "TOKEN"), (&meant.url(), "auth login")].map(|(agent, whose)| (agent.to_owned(), whose));
    for (agent, whose) in named {
        assert_eq!(caller().run(&["send", &agent, "hi", "-q"]).stdout, "hello\n");
        assert_eq!(meant.shown(), ["Bearer hunter2"]);
        let set = caller().variable("A2ACLI_ENDPOINT", &other.url());
        refused(&set.run(&["send", &agent, "hi", "--json"]), &["A2ACLI_ENDPOINT", &other.address, whose]);
        let named = caller().file("set.env", format!("A2ACLI_ENDPOINT={}\n", other.url()));
        let run = named.run(&["send", &agent, "hi", "--json", "--config", "set.env"]);
        refused(&run, &["set.env", &other.address, whose]);
        assert_eq!(other.shown().len(), 0);
        let typed = caller().run(&["send", &agent, "hi", "-q", "--endpoint", &other.url()]);
        assert_eq!((typed.code, other.shown()), (Some(0), vec!["Bearer hunter2".to_owned()]), "{}", typed.stderr);
    }
}
