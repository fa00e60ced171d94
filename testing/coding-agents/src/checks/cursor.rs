//! Cursor's agent, which cannot be installed without an account: a program in its place tells what its documentation shows.

use std::process::Stdio;

use switchboard_a2a::TaskState;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use super::approvals::was_refused;
use crate::caller::{artifact_data, artifact_text, has_answered, has_failed, is, text, within};
use crate::fixture::Fixture;

const PLAIN: &str = include_str!("../../../../crates/cli-agents/tests/captures/cursor-plain.txt");
const REJECTED: &str = include_str!("../../../../crates/cli-agents/tests/captures/cursor-rejected.txt");
/// The conversation in them.
const SESSION: &str = "c6b62c6f-7ead-4fd6-9922-e952131177ff";

/// Notes what it is given, and does what the prompt says, which comes last.
const PROGRAM: &str = r#"#!/bin/sh
cd "$(dirname "$0")" || exit 3
for prompt; do :; done
printf '%s\n' "$*" >> given
case $prompt in
    --version) echo 2026.11.01 ;;
    *"fall over"*) echo 'the model is not there' >&2; exit 1 ;;
    *"run the tests"*) cat rejected ;;
    *) cat plain ;;
esac
"#;

/// A turn, one that follows, one in which a tool was refused and one that fails.
pub(super) async fn conversation(fixture: &mut Fixture<'_>) -> anyhow::Result<()> {
    for (name, content) in [("plain", told(PLAIN)), ("rejected", told(REJECTED)), ("cursor-agent", PROGRAM.to_owned())]
    {
        put(fixture, name, &content).await?;
    }
    let caller = fixture.caller()?;
    let first = caller.send(text("--help me to a summary")).await?;
    has_answered(&first, "I've created the summary in summary.txt")?;
    anyhow::ensure!(artifact_data(&first, "agent-metadata")?["sessionId"] == SESSION, "it is another conversation");
    anyhow::ensure!(artifact_text(&first, "reasoning")?.contains("I should read it first."), "the thought is not told");
    let changed = artifact_data(&first, "result")?["filesChanged"].to_string();
    anyhow::ensure!(changed.contains("summary.txt"), "what was changed is {changed}");

    let second = caller.send(within(&first.context_id, "and once more")).await?;
    is(&second, TaskState::Completed)?;
    let given = std::fs::read_to_string(fixture.path().join("given"))?;
    let given: Vec<&str> = given.lines().filter(|line| line.contains("stream-json")).collect();
    let resume = format!("--resume={SESSION}");
    let (begun, resumed) = (given.first().unwrap_or(&""), given.last().unwrap_or(&""));
    anyhow::ensure!(
        begun.ends_with("-- --help me to a summary") && !begun.contains("--resume"),
        "it was given {begun}"
    );
    anyhow::ensure!(resumed.contains(&resume) && resumed.ends_with("-- and once more"), "it was given {resumed}");

    let refused = caller.send(text("run the tests")).await?;
    was_refused(&refused)?;
    let failed = caller.send(text("fall over")).await?;
    let told = has_failed(&failed, "agent_error")?;
    anyhow::ensure!(told.contains("the model is not there"), "it says: {told}");
    Ok(())
}

/// What the program says in a capture.
fn told(capture: &str) -> String {
    capture.lines().filter_map(|line| line.strip_prefix("<< ")).map(|line| format!("{line}\n")).collect()
}

/// Writes a program. Not by ourselves: a child that is started at that moment would hold the file open, and then it cannot
/// be run.
async fn put(fixture: &Fixture<'_>, name: &str, content: &str) -> anyhow::Result<()> {
    let mut command = Command::new("sh");
    command.args(["-c", r#"cat > "$0" && chmod 755 "$0""#, name]).current_dir(fixture.path()).stdin(Stdio::piped());
    let mut writer = command.spawn()?;
    if let Some(mut input) = writer.stdin.take() {
        input.write_all(content.as_bytes()).await?;
    }
    let status = writer.wait().await?;
    anyhow::ensure!(status.success(), "cannot write {name}");
    Ok(())
}
