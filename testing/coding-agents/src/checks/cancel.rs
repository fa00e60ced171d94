//! Tasks that are canceled while their programs are at work.

use fake_model::Seen;
use switchboard_a2a::{Task, TaskState};

use super::LONG_TOOL;
use crate::caller::{Caller, answer, is, text};
use crate::fixture::{Fixture, HANG_GUARD};

/// An answer and a tool that would take an hour, so that a task ends before only because it is canceled.
const LONG_ANSWER: &str = "[[slow 36000 100]]";

/// Two at once: one while the model speaks, the other while a tool runs.
pub(super) async fn cancel(fixture: &mut Fixture<'_>) -> anyhow::Result<()> {
    let caller = fixture.caller()?;
    // One after the other: two of Codex that begin at once in a new home get in each other's way.
    let speaking = speaking(fixture, &caller).await?;
    let working = begin_long_tool(fixture, &caller, LONG_TOOL).await?;
    let ends = async |task: &Task| {
        let task = caller.cancel(&task.id).await?;
        let task = if task.status.state.is_terminal() { task } else { caller.settled(&task.id).await? };
        is(&task, TaskState::Canceled)?;
        anyhow::Ok(())
    };
    tokio::try_join!(ends(&speaking), ends(&working))?;
    fixture.quiet().await
}

async fn speaking(fixture: &Fixture<'_>, caller: &Caller) -> anyhow::Result<Task> {
    let task = caller.begin(text(LONG_ANSWER)).await?;
    let is_asked = |seen: &Seen| !seen.is_side && seen.prompt.contains(LONG_ANSWER);
    tokio::select! {
        asked = fixture.model.wait_for(HANG_GUARD, is_asked) => drop(asked?),
        settled = caller.settled(&task.id) => is(&settled?, TaskState::Working)?,
    }
    Ok(task)
}

/// Begins a task, allows its tool, and waits until that runs.
pub(super) async fn begin_long_tool(fixture: &Fixture<'_>, caller: &Caller, prompt: &str) -> anyhow::Result<Task> {
    let task = match fixture.subject.asks {
        false => caller.begin(text(prompt)).await?,
        true => {
            let task = caller.send(text(prompt)).await?;
            is(&task, TaskState::InputRequired)?;
            caller.begin(answer(&task, "y")).await?
        }
    };
    fixture.written("started").await?;
    Ok(task)
}
