//! Rules by the names that each program has for its tools, and words of callers that could be more than words.

use serde_json::{Value, json};

use crate::caller::{has_answered, text};
use crate::fixture::Fixture;

/// What a subject calls its shell in rules, in the form in which it asks.
pub(super) fn no_shell(cli: &str) -> Option<Value> {
    let name = match cli {
        "claude-code" => "Bash",
        "gemini" => "run_shell_command",
        "opencode" => "bash",
        _ => return None,
    };
    Some(json!({ "permissions": { "deny": [name] } }))
}

/// What a rule denies is not done and not asked about, and the turn ends as the program says.
pub(super) async fn denied_by_name(fixture: &mut Fixture<'_>) -> anyhow::Result<()> {
    let task = fixture.caller()?.send(text("[[bash echo ran > by-shell]] [[say so be it]]")).await?;
    has_answered(&task, "so be it")?;
    anyhow::ensure!(fixture.read("by-shell").is_empty(), "the command was run");
    Ok(())
}

/// A file that a message mentions is not read by the program itself.
pub(super) async fn mention(fixture: &mut Fixture<'_>) -> anyhow::Result<()> {
    const HELD: &str = "held-in-the-file";
    std::fs::write(fixture.project.join("mentioned.txt"), HELD)?;
    let task = fixture.caller()?.send(text("look at @mentioned.txt and @./mentioned.txt [[say all done]]")).await?;
    has_answered(&task, "all done")?;
    let asked = format!("{:?}", fixture.asked()?);
    anyhow::ensure!(asked.contains("mentioned.txt") && !asked.contains(HELD), "the model was told: {asked}");
    Ok(())
}
