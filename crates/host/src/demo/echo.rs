//! The echo agent: the first agent to call when nothing else is configured.

use switchboard_a2a::Artifact;
use switchboard_engine::{Agent, AgentError, Manifest, Skill, Start, TaskHandle, Turn};

/// Answers every message with its own parts.
#[derive(Clone, Copy, Debug, Default)]
pub struct Echo;

impl Agent for Echo {
    fn manifest(&self) -> Manifest {
        let skill = Skill::new("echo", "Echo", "Returns every part of the message as one artifact")
            .tags(&["demo", "echo"])
            .examples(&["hello"]);
        Manifest {
            input_modes: vec!["*/*".to_owned()],
            output_modes: vec!["text/plain".to_owned(), "application/json".to_owned(), "*/*".to_owned()],
            start: Start::WithCommit,
            ..Manifest::new("Echo", "Says back what it is told")
        }
        .skill(skill)
    }

    async fn run(&self, turn: Turn, task: TaskHandle) -> Result<(), AgentError> {
        task.artifact(Artifact::new(turn.message.parts).named("echo")).await?;
        Ok(task.complete().await?)
    }
}
