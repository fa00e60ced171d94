//! `switchboard health`: how agents do, by what the server has counted.

use std::time::Instant;

use serde_json::{Value, json};

use crate::http::PATIENCE;
use crate::program::Workspace;
use crate::server::Server;

/// What `health -o json` says, once it has counted so many ended tasks.
fn counted(workspace: &Workspace, arguments: &[&str], outcomes: u64) -> Value {
    let began = Instant::now();
    loop {
        let run = workspace.run(&[&["health", "-o", "json"], arguments].concat());
        let health = run.json();
        if health["totals"]["outcomes"] == outcomes {
            return health;
        }
        assert!(began.elapsed() < PATIENCE, "{health}{}", run.stderr);
    }
}

#[test]
fn agents_are_shown_with_their_successes_and_failures() {
    let workspace = Workspace::new();
    let server = Server::start(&workspace);
    let nothing = workspace.run(&["health"]);
    assert_eq!((nothing.code, nothing.stdout.as_str()), (Some(0), "no task has ended in the last 24h\n"));
    for (agent, text) in [("echo", "hi"), ("probe", "hello"), ("probe", "err")] {
        assert_eq!(server.message(agent, "send", text, "").status, 200);
    }
    let health = counted(&workspace, &[], 3);
    let probe = health["agents"].as_array().unwrap().iter().find(|agent| agent["agent"] == "probe").unwrap();
    assert_eq!((&probe["outcomes"], &probe["successRate"]), (&json!(2), &json!(0.5)));
    assert_eq!(health["alerts"], json!([]));

    let table = workspace.run(&["health"]).stdout;
    let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0].join(" "), "AGENT ENDED SUCCEEDED P50 P95 COST COST/SUCCESS FAILED 1H");
    assert_eq!((rows[1][..3].to_vec(), rows[2][..3].to_vec()), (vec!["echo", "1", "100%"], vec!["probe", "2", "50%"]));
    assert_eq!(rows[3][..3], ["all", "3", "67%"]);
    let one = workspace.run(&["health", "--agent", "probe", "--window", "1h"]).stdout;
    assert!(!one.contains("echo") && one.contains("FAILED AT") && one.contains("failed"), "{one}");

    // A key sees what it has caused itself, and no alerts.
    let created = workspace.run(&["keys", "create", "-o", "json"]).json();
    let key = created["key"]["secret"].as_str().unwrap();
    assert_eq!(server.message("echo", "send", "mine", key).status, 200);
    let own = counted(&workspace, &["--bearer", key], 1);
    assert_eq!((&own["agents"][0]["agent"], &own["alerts"]), (&json!("echo"), &Value::Null));
    let refused = workspace.run(&["health"]);
    assert!(
        refused.code == Some(4) && refused.stderr.contains("next: set A2ACLI_BEARER to a key"),
        "{}",
        refused.stderr
    );
    let wrong = workspace.run(&["health", "--window", "2h"]);
    assert_eq!(wrong.code, Some(2));
}
