//! Does what its text says: for testing clients, proxies and ourselves.

use std::time::Duration;

use switchboard_a2a::{Artifact, ArtifactId, Json, Part, PartContent};
use switchboard_engine::{
    Agent, AgentError, Cause, Manifest, Recovery, Replies, Skill, Start, TaskHandle, TaskView, Turn,
};

/// The commands, one line each; the unknown ones are answered with this.
const COMMANDS: [(&str, &str); 15] = [
    ("hello", "working, one artifact, completed"),
    ("stream:N", "N chunks as fast as possible"),
    ("streamy:N", "N chunks, yielding between them"),
    ("sleep:MS", "works for MS milliseconds"),
    ("hold", "works until it is canceled"),
    ("ask", "asks a question and repeats the answer"),
    ("auth", "asks for credentials and goes on after the next message"),
    ("reject", "rejects the task"),
    ("err", "fails"),
    ("panic", "panics"),
    ("silent", "returns without a result"),
    ("message", "answers with a message instead of a task"),
    ("file", "produces a file"),
    ("data", "produces structured data"),
    ("big:BYTES", "produces a text of that size"),
];

/// The most chunks, bytes and milliseconds one command may ask for.
const MOST: u64 = 10_000_000;

/// Does what its text says.
#[derive(Clone, Copy, Debug, Default)]
pub struct Probe;

impl Agent for Probe {
    fn manifest(&self) -> Manifest {
        let mut skill =
            Skill::new("probe", "Probe", "Behaves as the text says, for testing").tags(&["demo", "testing"]);
        skill.examples = COMMANDS.iter().map(|(name, _)| name.replace('N', "100").replace("MS", "500")).collect();
        Manifest {
            input_modes: vec!["text/plain".to_owned()],
            output_modes: ["text/plain", "application/json", "application/octet-stream"].map(str::to_owned).to_vec(),
            start: Start::WithCommit,
            replies: Replies::Either,
            ..Manifest::new("Probe", "Does what its text says, for testing clients, proxies and servers")
        }
        .skill(skill)
    }

    async fn run(&self, turn: Turn, task: TaskHandle) -> Result<(), AgentError> {
        if let Cause::Answer { .. } = turn.cause {
            return Ok(task.complete_with(format!("you said: {}", turn.text())).await?);
        }
        let text = turn.text();
        let (name, argument) = text.trim().split_once(':').unwrap_or((text.trim(), ""));
        let number = argument.trim().parse::<u64>().unwrap_or(0).min(MOST);
        match name {
            "hello" => {
                task.working().await?;
                task.artifact(Artifact::text("hello").named("greeting")).await?;
                task.complete().await?;
            }
            "stream" => chunks(&task, number, false).await?,
            "streamy" => chunks(&task, number, true).await?,
            "sleep" => {
                task.working().await?;
                tokio::select! {
                    () = tokio::time::sleep(Duration::from_millis(number)) => {}
                    () = task.canceled() => return Ok(()),
                }
                task.complete_with(format!("slept for {number} ms")).await?;
            }
            "hold" => {
                task.working().await?;
                task.canceled().await;
            }
            "ask" => {
                let answer = task.ask("What shall I repeat?").await?;
                task.complete_with(format!("you said: {}", answer.joined_text())).await?;
            }
            "auth" => {
                let answer = task.authorize("Please sign in, then send any message").await?;
                task.complete_with(format!("you said: {}", answer.joined_text())).await?;
            }
            "reject" => task.reject("this probe was told to reject").await?,
            "err" => return Err(AgentError::new("this probe was told to fail")),
            #[expect(clippy::panic, reason = "the point of the command is to show that a panic is a failed task")]
            "panic" => panic!("this probe was told to panic"),
            "silent" => {}
            "message" => task.reply(vec![Part::text("a direct message")]).await?,
            "file" => {
                let part = Part {
                    filename: Some("probe.txt".to_owned()),
                    media_type: Some("text/plain".to_owned()),
                    ..Part::new(PartContent::Raw(b"a file from the probe\n".to_vec()))
                };
                task.artifact(Artifact::new(vec![part]).named("file")).await?;
                task.complete().await?;
            }
            "data" => {
                let value = serde_json::json!({"probe": true, "numbers": [1, 2, 3], "largest": u64::MAX});
                let value = Json::from_serialize(&value).map_err(|error| AgentError::new(error.to_string()))?;
                task.artifact(Artifact::new(vec![Part::data(value)]).named("data")).await?;
                task.complete().await?;
            }
            "big" => {
                let size = usize::try_from(number).unwrap_or(usize::MAX);
                task.artifact(Artifact::text("x".repeat(size)).named("big")).await?;
                task.complete().await?;
            }
            _ => {
                let lines = COMMANDS.map(|(name, effect)| format!("{name}: {effect}"));
                task.complete_with(format!("Send me one of these:\n{}", lines.join("\n"))).await?;
            }
        }
        Ok(())
    }

    async fn recover(&self, task: &TaskView) -> Recovery {
        // Waiting can simply go on; chunks already sent must not be sent again.
        match task.message.joined_text().trim() {
            "hold" | "ask" | "auth" => Recovery::Resume,
            _ => Recovery::Fail("the server stopped while the probe was at work".to_owned()),
        }
    }
}

/// One artifact in `count` chunks, then the end.
async fn chunks(task: &TaskHandle, count: u64, polite: bool) -> Result<(), AgentError> {
    let artifact_id = ArtifactId::generate();
    task.working().await?;
    for number in 1..=count {
        let artifact = Artifact { artifact_id: artifact_id.clone(), ..Artifact::text(format!("chunk {number}\n")) };
        task.chunk(artifact, number > 1, number == count).await?;
        if polite {
            tokio::task::yield_now().await;
        }
    }
    Ok(task.complete().await?)
}
