//! `--debug`: what goes over the wire, and never a secret.

use super::Fleet;
use crate::program::Workspace;

#[test]
fn requests_and_answers_are_shown_without_secrets() {
    let settings = "webhooks: { allowedHosts: [hooks.example] }\n";
    let fleet = Fleet::of(Workspace::new().file("switchboard.yaml", settings).variable("TOKEN", "webhook-secret"));
    let arguments = ["--debug", "--bearer", "bearer-secret", "--svc-param", "X-Team: param-secret"];
    // An agent that repeats what it should not know must not get it onto the screen either.
    let run = fleet.run(&[&["send", "echo", "say bearer-secret", "-q"], &arguments[..]].concat());
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), "say bearer-secret\n"), "the answer is the answer");
    let url = format!("http://{}/a2a/echo", fleet.server.address);
    for line in [
        format!("> GET {url}/.well-known/agent-card.json"),
        format!("> POST {url}"),
        "> a2a-version: 1.0".to_owned(),
        "> authorization: ***".to_owned(),
        "> x-team: ***".to_owned(),
        "< 200 OK".to_owned(),
        "< content-type: text/event-stream".to_owned(),
        r#"{"text":"say ***"}"#.to_owned(),
        "this interface is used".to_owned(),
    ] {
        assert!(run.stderr.contains(&line), "no {line} in\n{}", run.stderr);
    }
    assert!(!run.stderr.contains("secret"), "{}", run.stderr);

    let task = fleet.begin("probe", "hold");
    let set =
        ["task", "push-config", "set", "probe", &task, "--url", "https://hooks.example/in", "--token-env", "TOKEN"];
    let run = fleet.run(&[&set[..], &arguments[..], &["--json"]].concat());
    assert!(run.code == Some(0) && run.stderr.contains(r#""token":"***""#), "{}", run.stderr);
    assert!(!run.stderr.contains("secret") && !run.stdout.contains("secret"), "{}", run.stderr);
}
