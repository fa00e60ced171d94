//! `task push-config`: set, shown, listed and removed, without its secrets being printed.

use serde_json::json;

use super::Fleet;
use crate::program::Workspace;

#[test]
fn a_webhook_is_set_shown_listed_and_removed() {
    let settings = "webhooks: { allowedHosts: [hooks.example] }\n";
    let workspace = Workspace::new().file("switchboard.yaml", settings).variable("TOKEN", "hunter2");
    let fleet = Fleet::of(workspace);
    let task = fleet.begin("probe", "hold");
    let run =
        |command: &str, rest: &[&str]| fleet.run(&[&["task", "push-config", command, "probe", &task], rest].concat());
    let set = run("set", &["--url", "https://hooks.example/in", "--id", "w1", "--token-env", "TOKEN"]);
    let shown = "webhook: w1\ntask: ID1\nurl: https://hooks.example/in\n";
    assert_eq!((set.code, fleet.stable(&set.stdout).as_str()), (Some(0), shown), "{}", set.stderr);
    let got = run("get", &["w1", "--json"]);
    assert_eq!((&got.json()["id"], &got.json()["url"]), (&json!("w1"), &json!("https://hooks.example/in")));
    let list = run("list", &[]);
    assert_eq!(list.stdout, format!("{}\ntotal: 1\n", set.stdout));
    for run in [&set, &got, &list, &run("list", &["--json"])] {
        assert!(!run.stdout.contains("hunter2"), "{}", run.stdout);
    }
    assert_eq!(run("delete", &["w1"]).stdout, format!("removed: w1\ntask: {task}\n"));
    assert_eq!(run("list", &["--json"]).json()["configs"], json!([]));
    let unset = run("set", &["--url", "https://hooks.example/in", "--token-env", "NOT_SET", "--json"]);
    assert!(unset.code == Some(2) && unset.stdout.contains("NOT_SET"), "{}", unset.stdout);
}
