//! Models that cannot be asked.

use crate::caller::{has_answered, has_failed, said, text};
use crate::fixture::Fixture;
use crate::subject::WhenDown;

/// The model refuses: the task fails with the model's own words.
pub(super) async fn refused(fixture: &mut Fixture<'_>) -> anyhow::Result<()> {
    let task = fixture.caller()?.send(text("[[status 400]]")).await?;
    let told = has_failed(&task, "agent_error")?;
    anyhow::ensure!(told.contains("fake 400"), "it says: {told}");
    Ok(())
}

/// The model is busy, and then breaks off: the agent asks again by itself, and the task comes to its end.
pub(super) async fn retried(fixture: &mut Fixture<'_>) -> anyhow::Result<()> {
    let task = fixture.caller()?.send(text("[[status 429 1]] [[cut 1]] [[say whole this time]]")).await?;
    has_answered(&task, "whole this time")?;
    let asked = fixture.asked()?.len();
    anyhow::ensure!(asked == 3, "the model was asked {asked} times");
    Ok(())
}

/// The model takes the question and never answers: silence ends the task.
pub(super) async fn hangs(fixture: &mut Fixture<'_>) -> anyhow::Result<()> {
    let task = fixture.caller()?.send(text("[[hang]]")).await?;
    let told = has_failed(&task, "idle")?;
    anyhow::ensure!(told.contains("(idle)"), "it says: {told}");
    let is_asked = fixture.asked()?.iter().any(|seen| seen.prompt.contains("[[hang]]"));
    anyhow::ensure!(is_asked, "the model was not asked");
    fixture.quiet().await
}

/// Nothing listens where the model should be: the task fails, and says why.
pub(super) async fn endpoint_down(fixture: &mut Fixture<'_>) -> anyhow::Result<()> {
    let task = fixture.caller()?.send(text("[[say never said]]")).await?;
    match fixture.subject.when_down {
        WhenDown::GivesUp => {
            let told = has_failed(&task, "agent_error")?;
            anyhow::ensure!(told.to_lowercase().contains("connect"), "it says: {told}");
        }
        WhenDown::TriesForEver => {
            let told = has_failed(&task, "idle").or_else(|_| has_failed(&task, "timed_out"))?;
            anyhow::ensure!(told.contains("(idle)") || told.contains("(timeout)"), "it says: {}", said(&task));
        }
    }
    anyhow::ensure!(fixture.model.requests().is_empty(), "there was a model after all");
    Ok(())
}
