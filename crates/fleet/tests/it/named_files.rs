//! Files that agents name: what is in them is part of a definition.

use switchboard_fleet::config::agent_files::{AgentFiles, AgentListing};

use crate::workspace::{Workspace, entry};

#[test]
fn a_client_certificate_that_is_mended_or_renewed_makes_another_definition() {
    let agents = "agents:
  - { name: far, url: \"https://far.example.com\", tls: { cert: far.pem, key: keys/far.pem } }
  - { name: other, url: \"https://other.example.com\" }
";
    let workspace = Workspace::new(&[("agents.yaml", agents)]);
    let mut files = workspace.agent_files();
    let mut before = files.read().unwrap();
    assert!(files.read().is_none(), "files that are not there stay so");
    let mut changed = |files: &mut AgentFiles| {
        let after = files.read().unwrap();
        assert!(!entry(&after, "far").is_same(entry(&before, "far")), "it is made anew");
        assert!(entry(&after, "other").is_same(entry(&before, "other")), "no other is");
        // Nobody is shown anything of a key.
        let shown = |listing: &AgentListing| serde_json::to_value(entry(listing, "far")).unwrap();
        assert_eq!(shown(&after), shown(&before));
        before = after;
    };

    // Two files, which do not change at once: they count once they were read twice in a row as they are.
    workspace.write("far.pem", "a certificate");
    assert!(files.read().is_none() && files.is_unsettled());
    workspace.write("keys/far.pem", "a key");
    assert!(files.read().is_none() && files.is_unsettled());
    changed(&mut files);
    assert!(files.read().is_none() && !files.is_unsettled());

    // One that is gone while it is renewed was never away.
    workspace.rename("keys/far.pem", "aside");
    assert!(files.read().is_none());
    workspace.rename("aside", "keys/far.pem");
    assert!(files.read().is_none() && !files.is_unsettled());

    workspace.write("keys/far.pem", "b key");
    files.ask_for_next();
    changed(&mut files);
}

#[test]
fn an_adapter_file_that_has_changed_makes_another_definition_of_each_agent_that_names_it() {
    let agents = "agents:
  - { name: one, cli: generic, adapter: adapters/own.yaml }
  - { name: two, cli: generic, adapter: adapters/own.yaml }
  - { name: echo, builtin: echo }
";
    let workspace = Workspace::new(&[("agents.yaml", agents), ("adapters/own.yaml", "title: One\n")]);
    let mut files = workspace.agent_files();
    let before = files.read().unwrap();
    workspace.write("adapters/own.yaml", "title: Two\n");
    assert!(files.read().is_none() && files.is_unsettled());
    let after = files.read().unwrap();
    assert_eq!(after.problems.len(), 0);
    let same = ["one", "two", "echo"].map(|name| entry(&before, name).is_same(entry(&after, name)));
    assert_eq!(same, [false, false, true]);
    // The list has changed, and the file has not.
    workspace.write("agents.yaml", &format!("{agents}  - {{ name: more, builtin: echo }}\n"));
    let later = files.read().unwrap();
    assert!(entry(&later, "one").is_same(entry(&after, "one")));

    // What nobody names any more is not looked at.
    workspace.write("agents.yaml", "agents: [{ name: echo, builtin: echo }]\n");
    files.read().unwrap();
    workspace.write("adapters/own.yaml", "title: Three\n");
    assert!(files.read().is_none() && !files.is_unsettled());
}

#[test]
fn a_schema_of_results_that_has_changed_makes_another_definition_and_one_that_is_mended_counts_when_asked_for() {
    let skills = "skills: [{ name: count, description: Counts, outputSchema: schemas/count.json }]";
    let agents = format!("agents:\n  - {{ name: far, url: \"https://far.example.com\", {skills} }}\n");
    let workspace = Workspace::new(&[("agents.yaml", "agents: [{ name: echo, builtin: echo }]\n")]);
    let mut files = workspace.agent_files();
    files.read().unwrap();
    workspace.write("agents.yaml", &agents);
    let refused = files.read().unwrap();
    assert_eq!(refused.problems.len(), 1, "{:?}", refused.problems);
    workspace.write("schemas/count.json", r#"{ "type": "integer" }"#);
    files.ask_for_next();
    let before = files.read().unwrap();
    assert_eq!(before.problems.len(), 0, "{:?}", before.problems);

    workspace.write("schemas/count.json", r#"{ "type": "number" }"#);
    assert!(files.read().is_none() && files.is_unsettled());
    let after = files.read().unwrap();
    assert!(!entry(&after, "far").is_same(entry(&before, "far")), "it is made anew");
    files.ask_for_next();
    assert!(files.read().is_none(), "nothing has changed, and nothing is wrong");
}
