//! Turns that go well.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Context;
use coding_agents_tests::Agent;
use switchboard_a2a::{Json, Message, StreamResponse, Task, Version};

use crate::caller::{artifact_data, artifact_text, has_answered, text, within};
use crate::fixture::Fixture;
use crate::subject::Tells;

/// What an agent would take for a flag if it were not careful.
const PROMPT: &str = "--help is what the pelican said";

/// A whole turn, what it has cost, and one that follows it in the other version of the protocol.
pub(super) async fn turn_and_follow_up(fixture: &mut Fixture<'_>) -> anyhow::Result<()> {
    let first = fixture.caller()?.send(text(PROMPT)).await?;
    has_answered(&first, &format!("echo: {PROMPT}"))?;
    let facts = artifact_data(&first, "agent-metadata")?;
    anyhow::ensure!(facts["cli"] == fixture.subject.keys["cli"] && facts["sessionId"].is_string(), "{facts}");
    let result = artifact_data(&first, "result")?;
    anyhow::ensure!(result["summary"].as_str().is_some_and(|summary| summary.contains(PROMPT)), "{result}");
    anyhow::ensure!(artifact_text(&first, "assistant-response")?.contains(PROMPT), "the answer is not in its artifact");
    let usage = first.metadata.as_ref().and_then(|metadata| metadata.get("switchboard/usage"));
    let usage: serde_json::Value = usage.map(Json::read).transpose()?.unwrap_or_default();
    let tokens = usage["inputTokens"].as_u64().zip(usage["outputTokens"].as_u64());
    anyhow::ensure!(tokens.is_some_and(|(input, output)| input > 0 && output > 0), "the usage is {usage}");
    let money = usage["costUsd"].as_f64().is_some_and(|money| money > 0.0);
    anyhow::ensure!(money == (fixture.subject.tells == Tells::TokensAndMoney), "the usage is {usage}");

    let second = fixture.caller_in(Version::V03)?.send(within(&first.context_id, "[[history]]")).await?;
    has_answered(&second, PROMPT)?;
    let asked = fixture.asked()?;
    let prompts: Vec<usize> = asked.iter().map(|seen| seen.prompts).collect();
    // Over the protocol, Gemini CLI loses what is taken up in the minute in which it began. Then it is told what was said.
    let is_told = fixture.subject.agent == Agent::Gemini && fixture.subject.asks && prompts == [1, 1];
    anyhow::ensure!(is_told || prompts == [1, 2], "the model was given so many prompts: {prompts:?}");
    Ok(())
}

/// What is taken up in another minute is the agent's own session, with all that was said in it.
pub(super) async fn resumed_later(fixture: &mut Fixture<'_>) -> anyhow::Result<()> {
    let first = fixture.caller()?.send(text(PROMPT)).await?;
    has_answered(&first, PROMPT)?;
    let since = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    tokio::time::sleep(Duration::from_secs(61 - since % 60)).await;
    let second = fixture.caller()?.send(within(&first.context_id, "[[history]]")).await?;
    has_answered(&second, PROMPT)?;
    anyhow::ensure!(session(&first)? == session(&second)?, "it is another session");
    let prompts: Vec<usize> = fixture.asked()?.iter().map(|seen| seen.prompts).collect();
    anyhow::ensure!(prompts == [1, 2], "the model was given so many prompts: {prompts:?}");
    Ok(())
}

/// An agent that has lost its session is told what was said, and so is the caller.
pub(super) async fn transcript(fixture: &mut Fixture<'_>) -> anyhow::Result<()> {
    let first = fixture.caller()?.send(text(PROMPT)).await?;
    has_answered(&first, PROMPT)?;
    std::fs::remove_dir_all(fixture.path().join("home/.gemini/tmp"))?;
    let (second, told) = fixture.caller()?.follow(within(&first.context_id, "[[history]]")).await?;
    has_answered(&second, PROMPT)?;
    anyhow::ensure!(session(&first)? != session(&second)?, "it is the same session");
    let says = |event: &StreamResponse| match event {
        StreamResponse::StatusUpdate(update) => update.status.message.as_ref().map(Message::joined_text),
        _ => None,
    };
    let is_told = told.iter().filter_map(|(_, event)| says(event)).any(|text| text.contains("lost the earlier"));
    anyhow::ensure!(is_told, "the caller is not told");
    let asked = fixture.asked()?;
    let last = asked.last().map(|seen| (seen.prompts, seen.prompt.contains(&format!("User: {PROMPT}"))));
    anyhow::ensure!(last == Some((1, true)), "the model was given {asked:?}");
    Ok(())
}

/// Which session of the agent a task was.
fn session(task: &Task) -> anyhow::Result<String> {
    let facts = artifact_data(task, "agent-metadata")?;
    facts["sessionId"].as_str().map(str::to_owned).with_context(|| format!("there is no session in {facts}"))
}

/// What the model says is told while it is said, by the agents that can.
pub(super) async fn streaming(fixture: &mut Fixture<'_>) -> anyhow::Result<()> {
    // Enough for an agent that is still busy with itself when the first ones come.
    const PIECES: usize = 10;
    let pause = Duration::from_millis(250);
    let prompt = format!("[[slow {PIECES} {}]]", pause.as_millis());
    let (task, told) = fixture.caller()?.follow(text(&prompt)).await?;
    has_answered(&task, "piece 10 at ")?;
    let whole = artifact_text(&task, "assistant-response")?;
    let pieces = (1..=PIECES).filter(|number| whole.contains(&format!("piece {number} at "))).count();
    anyhow::ensure!(pieces == PIECES, "the answer is {whole:?}");
    let updates: Vec<_> = told
        .iter()
        .filter(|(_, event)| match event {
            StreamResponse::ArtifactUpdate(update) => {
                let has_text =
                    update.artifact.parts.iter().any(|part| part.as_text().is_some_and(|text| !text.is_empty()));
                update.artifact.artifact_id.as_str() == "assistant-response" && has_text
            }
            _ => false,
        })
        .map(|(at, _)| *at)
        .collect();
    let over = updates.last().zip(updates.first()).map(|(last, first)| *last - *first).unwrap_or_default();
    let streams = updates.len() >= 3 && over >= 2 * pause;
    anyhow::ensure!(streams == fixture.subject.streams, "{} updates over {over:?}", updates.len());
    Ok(())
}

/// Tasks that are the first in a new home, all at once: each is done.
pub(super) async fn first_at_once(fixture: &mut Fixture<'_>) -> anyhow::Result<()> {
    let caller = fixture.caller()?;
    let tasks = (0..4).map(|_| caller.send(text("[[say all done]]")));
    for task in futures_util::future::try_join_all(tasks).await? {
        has_answered(&task, "all done")?;
    }
    Ok(())
}
