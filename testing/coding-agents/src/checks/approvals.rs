//! Tools, and who is asked about them.

use anyhow::Context;
use switchboard_a2a::{Task, Version};

use crate::caller::{answer, has_answered, has_failed, metadata, question, text};
use crate::fixture::Fixture;

pub(super) const COMMAND: &str = "[[bash echo ran > by-shell]] [[say all done]]";

/// A question that has all it needs; the id that answers are bound to.
pub(super) fn approval(task: &Task) -> anyhow::Result<String> {
    let asked = question(task)?;
    let options = asked["options"].as_array().map(Vec::as_slice).unwrap_or_default();
    let offers = |id: &str| options.iter().any(|option| option["id"] == id);
    let is_whole = asked["tool"].is_string() && asked["input"].is_object();
    anyhow::ensure!(is_whole && ["allow", "always", "deny"].into_iter().all(offers), "the question is {asked}");
    Ok(asked["approvalId"].as_str().with_context(|| format!("the question is {asked}"))?.to_owned())
}

/// A command that is allowed is run.
pub(super) async fn allowed(fixture: &mut Fixture<'_>) -> anyhow::Result<()> {
    let caller = fixture.caller()?;
    let task = caller.send(text(COMMAND)).await?;
    approval(&task)?;
    anyhow::ensure!(question(&task)?.to_string().contains("by-shell"), "the question does not tell the command");
    anyhow::ensure!(fixture.read("by-shell").is_empty(), "the command was run before it was allowed");
    let task = caller.send(answer(&task, "y")).await?;
    has_answered(&task, "all done")?;
    anyhow::ensure!(fixture.read("by-shell") == "ran", "the command was not run");
    Ok(())
}

/// A file that may not be written is not, and the task still comes to its end. In version 0.3.
pub(super) async fn denied(fixture: &mut Fixture<'_>) -> anyhow::Result<()> {
    let caller = fixture.caller_in(Version::V03)?;
    let written = fixture.project.join("written.txt");
    let task = caller.send(text(&format!("[[write {} some text]] [[say so be it]]", written.display()))).await?;
    approval(&task)?;
    let task = caller.send(answer(&task, "no, not there")).await?;
    has_answered(&task, if fixture.subject.goes_on_when_denied { "so be it" } else { "" })?;
    anyhow::ensure!(!written.exists(), "the file was written");
    let asked = fixture.asked()?.len();
    anyhow::ensure!(
        asked == if fixture.subject.goes_on_when_denied { 2 } else { 1 },
        "the model was asked {asked} times"
    );
    Ok(())
}

/// A command is run without a question where everything is allowed.
pub(super) async fn unasked(fixture: &mut Fixture<'_>) -> anyhow::Result<()> {
    let task = fixture.caller()?.send(text(COMMAND)).await?;
    has_answered(&task, "all done")?;
    anyhow::ensure!(fixture.read("by-shell") == "ran", "the command was not run");
    Ok(())
}

/// An error unless the task has failed because a tool may not be used.
pub(super) fn was_refused(task: &Task) -> anyhow::Result<()> {
    let told = has_failed(task, "agent_error")?;
    let detail = metadata(task, "switchboard/reasonDetail");
    anyhow::ensure!(detail.as_deref() == Some("tool_refused"), "the detail is {detail:?}: {told}");
    Ok(())
}

/// Neither a command nor a file where that is denied, and the caller is not asked.
pub(super) async fn refused(fixture: &mut Fixture<'_>) -> anyhow::Result<()> {
    let caller = fixture.caller()?;
    let written = fixture.project.join("written.txt");
    let write = format!("[[write {} some text]] [[say so be it]]", written.display());
    for prompt in [COMMAND, &write] {
        let task = caller.send(text(prompt)).await?;
        has_answered(&task, "").with_context(|| prompt.to_owned())?;
    }
    anyhow::ensure!(fixture.read("by-shell").is_empty(), "the command was run");
    anyhow::ensure!(!written.exists(), "the file was written");
    let prompts: Vec<String> = fixture.asked()?.into_iter().map(|seen| seen.prompt).collect();
    anyhow::ensure!(prompts.iter().any(|prompt| prompt.contains("some text")), "the model was asked only {prompts:?}");
    Ok(())
}
