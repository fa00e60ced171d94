//! What Claude Code refuses to root, and an agent that runs as somebody else.

use coding_agents_tests::User;
use switchboard_a2a::TaskState;

use crate::caller::{has_answered, is, said, text};
use crate::place::Place;

const COMMAND: &str = "[[bash id -un > by-shell]] [[say all done]]";

/// As root it does not go without permissions: the task fails and says what to do.
pub(super) async fn refused(place: &mut Place<'_>) -> anyhow::Result<()> {
    let task = place.caller()?.send(text(COMMAND)).await?;
    is(&task, TaskState::Failed)?;
    anyhow::ensure!(said(&task).contains("Set `user` of this agent"), "it says: {}", said(&task));
    anyhow::ensure!(place.read("by-shell").is_empty(), "the command was run");
    Ok(())
}

/// As somebody else it does, and so do its tools.
pub(super) async fn somebody_else(place: &mut Place<'_>) -> anyhow::Result<()> {
    let task = place.caller()?.send(text(COMMAND)).await?;
    has_answered(&task, "all done")?;
    anyhow::ensure!(place.read("by-shell") == User::NAME, "it ran as {:?}", place.read("by-shell"));
    Ok(())
}
