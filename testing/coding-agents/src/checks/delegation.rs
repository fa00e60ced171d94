//! Programs that call another agent with `switchboard send`, from their shell tool: with the token of their task, which has
//! to arrive there, and within the limits of a chain of calls.

use serde_json::{Value, json};
use switchboard_a2a::{Task, Version};

use crate::caller::{has_answered, text};
use crate::fixture::{Fixture, Unusual};
use crate::server;

/// Answers, or hands on to `coder` what has directives.
const HELPER: &str = r#"
text="$* $(cat)"
case "$text" in
    *"[["*) "$0" send coder "$text" </dev/null 2>&1 ;;
    *) echo folded ;;
esac
"#;

/// Two agents that may call each other, and no third task of a chain.
pub(super) fn pair(cli: &str) -> anyhow::Result<Unusual> {
    let mut keys = json!({ "delegates": ["helper"], "permissions": { "default": "allow" } });
    if cli == "codex" {
        // By itself it lets no command connect to anything.
        keys["args"] = json!(["-c", "sandbox_workspace_write.network_access=true"]);
    }
    let program = server::program()?.display().to_string();
    let helper = json!({
        "name": "helper", "cli": "generic", "command": ["sh", "-c", HELPER, program],
        "cwd": "helper", "delegates": ["coder"],
    });
    let settings = "delegation: { maxDepth: 2 }\n";
    Ok(Unusual { keys, others: vec![helper], settings, ..Unusual::default() })
}

/// What the program sends is a child of its task. At the end of a chain it is refused, and goes on.
pub(super) async fn within_limits(fixture: &mut Fixture<'_>) -> anyhow::Result<()> {
    let program = server::program()?;
    let send = |left: &str| {
        let program = program.display();
        format!(
            "[[bash {program} send helper 'fold this' </dev/null > {left} 2>&1; echo $? > {left}-code]] [[say all done]]"
        )
    };
    let task = fixture.caller()?.send(text(&send("first"))).await?;
    has_answered(&task, "all done")?;
    let told = fixture.read("first");
    anyhow::ensure!(fixture.read("first-code") == "0" && told.contains("folded"), "the helper was not called: {told}");
    let tree = tree(fixture, &task).await?;
    let child = &tree["children"][0];
    let is_child = tree["agent"] == "coder" && child["agent"] == "helper" && child["state"] == "completed";
    anyhow::ensure!(is_child && tree["children"][1].is_null(), "the tree is {tree}");

    let task = fixture.caller_of("helper", Version::V1)?.send(text(&send("second"))).await?;
    has_answered(&task, "all done")?;
    let told = fixture.read("second");
    let is_refused = told.contains("agent helper would be task 3 of a chain of at most 2 (delegation.maxDepth)");
    let is_whole = is_refused && told.contains("the chain is helper → coder → helper");
    anyhow::ensure!(is_whole && fixture.read("second-code") != "0", "the program was told: {told}");
    let tree = self::tree(fixture, &task).await?;
    let child = &tree["children"][0];
    let is_last = child["agent"] == "coder" && child["children"].as_array().is_none_or(Vec::is_empty);
    anyhow::ensure!(is_last, "nothing begins that is refused, but the tree is {tree}");
    Ok(())
}

async fn tree(fixture: &Fixture<'_>, task: &Task) -> anyhow::Result<Value> {
    fixture.api(&format!("/api/tasks/{}/tree", task.id)).await
}
