//! `switchboard plan`: skills by what they are declared to change.

use serde_json::json;

use crate::program::Workspace;
use crate::server::Server;

const AGENTS: &str = "\
agents:
  - name: closer
    builtin: echo
    skills:
      - { name: close, description: Closes, effects: [{ domain: board, path: open, delta: -2, confidence: 0.5 }] }
  - name: sweeper
    builtin: echo
    skills:
      - { name: sweep, description: Sweeps, effects: [{ domain: board, path: open, delta: -4, confidence: 0.5 }] }
";

#[test]
fn skills_are_found_by_what_they_change_and_the_best_one_gets_the_work() {
    let workspace = Workspace::new().file("agents.yaml", AGENTS);
    let server = Server::start(&workspace);
    let planned = workspace.run(&["plan", "board", "open", "down"]);
    let rows: Vec<Vec<&str>> = planned.stdout.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0].join(" "), "AGENT SKILL SCORE DELTA TRUST TASKS 24H", "{}", planned.stderr);
    assert_eq!(rows[1], ["sweeper", "sweep", "2.00", "-4.00", "0.50", "0"]);
    assert_eq!(rows[2], ["closer", "close", "1.00", "-2.00", "0.50", "0"]);
    let first = workspace.run(&["plan", "board", "open", "down", "--limit", "1", "-o", "json"]).json();
    assert_eq!(
        (&first["candidates"][0]["agent"], first["candidates"].as_array().map(Vec::len)),
        (&json!("sweeper"), Some(1))
    );

    let given = workspace.run(&["plan", "board", "open", "down", "--dispatch", "now"]);
    let task = given.stdout.lines().last().unwrap().strip_prefix("task: ").unwrap();
    let next = given.stderr.trim().strip_prefix("next: switchboard ").unwrap();
    let shown = workspace.run(&next.split_whitespace().collect::<Vec<_>>());
    assert!(shown.code == Some(0) && shown.stdout.contains(task), "{}{}", shown.stdout, shown.stderr);
    assert!(next.contains("/a2a/sweeper ") && shown.stdout.contains("now"), "{next}\n{}", shown.stdout);

    let nobody = workspace.run(&["plan", "board", "open", "up"]);
    assert_eq!(nobody.stdout, "no skill that you may call is declared to move board open up\n");
    let nobody = workspace.run(&["plan", "board", "open", "up", "--dispatch", "now"]);
    assert!(nobody.code == Some(1) && nobody.stderr.contains("next: skills declare"), "{}", nobody.stderr);
    assert_eq!(workspace.run(&["plan", "board", "open", "sideways"]).code, Some(2));
    drop(server);
}
