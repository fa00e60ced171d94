//! `switchboard routes`: what is done for events, from a file of the workspace or registered with the server.

use serde_json::{Value, json};

use crate::program::Workspace;
use crate::receiver::Receiver;
use crate::server::Server;

const AGENTS: &str = "agents: [{ name: echo, builtin: echo }, { name: probe, builtin: probe }]\n";
const ALLOWED: &str = "webhooks: { allowedHosts: [127.0.0.1] }\nhub: { projector: { flush: 10ms } }\n";
const SECRET: &str = "whsec_c2VjcmV0IG9mIGEgY2hhdCB0aGF0IGlzIHRvbGQ=";

#[test]
fn a_route_of_the_workspace_tells_a_receiver_signed_with_the_secret_that_it_names() {
    let receiver = Receiver::start();
    let route = "when: { topic: task.completed.echo }\n\
                 then: { url: '${HOOK}', secretEnv: HOOK_SECRET }\n\
                 content: { text: '{{ agent }}: {{ text }}' }\n";
    let workspace = Workspace::new()
        .file("agents.yaml", AGENTS)
        .file("switchboard.yaml", ALLOWED)
        .file("routes.d/done.yaml", route)
        .variable("HOOK", &format!("http://{}/secret-path", receiver.address))
        .variable("HOOK_SECRET", SECRET);
    let server = Server::start(&workspace);
    assert_eq!(workspace.run(&["send", "echo", "it is \"done\""]).code, Some(0));
    let delivery = receiver.got(1).remove(0);
    assert_eq!(delivery.json(), json!({ "text": "echo: it is \"done\"" }));
    assert_eq!(delivery.signatures(), [delivery.signed_with(SECRET)]);
    let listed = workspace.run(&["routes"]);
    let rows: Vec<String> =
        listed.stdout.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(rows[0], "ROUTE WHEN THEN STATE OWED SOURCE", "{}", listed.stderr);
    assert!(rows[1].starts_with("done task.completed.echo POST http://127.0.0.1:"), "{rows:?}");
    // Nothing repeats the path of the address, but to administrators.
    let line = std::fs::read_to_string(workspace.path().join("routes.d/done.yaml")).unwrap();
    assert!(!line.contains("secret-path"));
    drop(server);
}

#[test]
fn routes_are_registered_shown_replaced_and_deleted() {
    let receiver = Receiver::start();
    let hook =
        format!("when: {{ topic: deploy.# }}\nthen: {{ url: 'http://{}/hook' }}\nenabled: false\n", receiver.address);
    let workspace = Workspace::new()
        .file("agents.yaml", AGENTS)
        .file("switchboard.yaml", ALLOWED)
        .file(
            "to-agent.yaml",
            "when: { topic: 'task.failed.#', agent: probe, state: failed }\nthen: { targets: echo }\n",
        )
        .file("hook.yaml", hook)
        .file("wrong.yaml", "when: { topic: '#' }\nthen: { skil: x }\n");
    let server = Server::start(&workspace);
    let run = |arguments: &[&str]| workspace.run(&[&["routes"], arguments].concat());
    assert_eq!(run(&[]).stdout, "there is no route\n");
    let created = run(&["create", "to-agent.yaml"]);
    assert_eq!(created.stdout, "route to-agent has version 1 now\n", "{}", created.stderr);
    let refused = run(&["create", "to-agent.yaml"]);
    assert!(refused.code == Some(1) && refused.stderr.contains("--replace"), "{}", refused.stderr);
    assert_eq!(run(&["create", "to-agent.yaml", "--replace"]).stdout, "route to-agent has version 2 now\n");
    let created = run(&["create", "hook.yaml", "--replace", "-o", "json"]).json();
    assert_eq!(
        (&created["name"], &created["version"], &created["enabled"]),
        (&json!("hook"), &json!(1), &json!(false))
    );
    let wrong = run(&["create", "wrong.yaml"]);
    assert!(wrong.code == Some(1) && wrong.stdout.is_empty(), "{}", wrong.stdout);
    for part in ["when.topic", "then.skil", "skill"] {
        assert!(wrong.stderr.contains(part), "{}", wrong.stderr);
    }
    assert_eq!(run(&["create", "missing.yaml"]).code, Some(2));

    let listed = run(&["list", "-o", "json"]).json();
    let names: Vec<&Value> = listed["routes"].as_array().unwrap().iter().map(|route| &route["name"]).collect();
    assert_eq!(names, ["hook", "to-agent"]);
    let shown = run(&["show", "to-agent"]).stdout;
    for part in ["task.failed.#, agent probe, state failed", "to echo", "active", "version 2 of local"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(run(&["list"]).stdout.contains("disabled"));
    let unknown = run(&["show", "to-agnt"]);
    assert!(unknown.code == Some(1) && unknown.stderr.contains("did you mean to-agent?"), "{}", unknown.stderr);
    let unknown = run(&["delete", "hok"]);
    assert!(unknown.code == Some(1) && unknown.stderr.contains("did you mean hook?"), "{}", unknown.stderr);
    assert_eq!(run(&["delete", "hook"]).stdout, "deleted hook\n");
    assert_eq!(run(&["delete", "to-agent", "-o", "json"]).json(), json!({ "deleted": "to-agent" }));
    assert_eq!(run(&["list", "-o", "json"]).json(), json!({ "routes": [] }));
    drop(server);
}
