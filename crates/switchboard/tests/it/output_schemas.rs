//! Results of a program that are to fit a schema: it is asked for one that does once more, and then its task fails.

use serde_json::{Value, json};

use crate::program::Workspace;
use crate::server::Server;

const AGENTS: &str = "agents:
  - name: counter
    cli: generic
    command: [./count.sh]
    env: [PATH]
    skills: [{ name: count, description: Counts, outputSchema: count.json }]
";

/// Notes each run, and answers what it is asked for once more with the file `mended`.
const PROGRAM: &str = r#"#!/bin/sh
message=$(cat)
echo run >> runs
case $message in
*"JSON Schema"*) echo asked again >> runs; cat mended ;;
*) echo "There are three." ;;
esac
"#;

fn counted(server: &Server) -> Value {
    let message = json!({
        "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "count" }], "metadata": { "skill": "count" },
    });
    let body = json!({ "message": message }).to_string();
    server.post("/a2a/counter/message:send", "", &body).json()["task"].clone()
}

#[test]
fn a_program_may_mend_its_result_once() {
    let schema = json!({ "type": "object", "properties": { "count": { "type": "integer" } }, "required": ["count"] });
    let workspace = Workspace::new()
        .file("agents.yaml", AGENTS)
        .file("count.json", schema.to_string())
        .file("count.sh", PROGRAM)
        .file("mended", "{\"count\": 3}\n")
        .variable("PATH", "/usr/local/bin:/usr/bin:/bin");
    let script = workspace.path().join("count.sh");
    std::fs::set_permissions(script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let runs = || std::fs::read_to_string(workspace.path().join("runs")).unwrap();
    let server = Server::start(&workspace);

    let done = counted(&server);
    assert_eq!(done["status"]["state"], "TASK_STATE_COMPLETED", "{done}");
    let artifacts = done["artifacts"].as_array().unwrap().iter();
    let result = artifacts.filter(|artifact| artifact["name"] == "structured-result").collect::<Vec<_>>();
    assert_eq!(result.len(), 1, "{done}");
    let part = &result[0]["parts"][0];
    assert_eq!(
        (&part["data"], part["metadata"]["mimeType"].as_str()),
        (&json!({ "count": 3 }), Some("application/vnd.protolabs.count+json"))
    );
    assert_eq!(runs(), "run\nrun\nasked again\n");

    std::fs::write(workspace.path().join("mended"), "{\"count\": \"some\"}\n").unwrap();
    let failed = counted(&server);
    assert_eq!(failed["status"]["state"], "TASK_STATE_FAILED", "{failed}");
    let metadata = &failed["metadata"];
    let why = (&metadata["switchboard/reason"], &metadata["switchboard/reasonDetail"]);
    assert_eq!(why, (&json!("agent_error"), &json!("invalid_result")), "{failed}");
    let said = failed["status"]["message"]["parts"][0]["text"].as_str().unwrap();
    assert!(said.contains("/count") && said.contains("some"), "{said}");
    assert_eq!(runs(), "run\nrun\nasked again\nrun\nrun\nasked again\n", "once more, and not a third time");
    server.stop();
}
