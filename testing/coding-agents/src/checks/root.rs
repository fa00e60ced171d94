//! What Claude Code refuses to root, and an agent that runs as another user.

use coding_agents_tests::User;
use switchboard_a2a::TaskState;

use crate::caller::{has_answered, is, said, text};
use crate::fixture::Fixture;

const COMMAND: &str = "[[bash id -un > by-shell]] [[say all done]]";

/// As root it does not go without permissions: the task fails and says what to do.
pub(super) async fn refused(fixture: &mut Fixture<'_>) -> anyhow::Result<()> {
    let task = fixture.caller()?.send(text(COMMAND)).await?;
    is(&task, TaskState::Failed)?;
    anyhow::ensure!(said(&task).contains("Set `user` of this agent"), "it says: {}", said(&task));
    anyhow::ensure!(fixture.read("by-shell").is_empty(), "the command was run");
    Ok(())
}

/// As another user it does, and so do its tools.
pub(super) async fn as_other_user(fixture: &mut Fixture<'_>) -> anyhow::Result<()> {
    let task = fixture.caller()?.send(text(COMMAND)).await?;
    has_answered(&task, "all done")?;
    anyhow::ensure!(fixture.read("by-shell") == User::NAME, "it ran as {:?}", fixture.read("by-shell"));
    Ok(())
}
