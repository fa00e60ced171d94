//! The agent under test: an ordinary [`Agent`], with nothing that another one could not have.

use std::time::Duration;

use switchboard::{Agent, AgentError, Artifact, Manifest, Part, Recovery, Replies, Skill, TaskHandle, TaskView, Turn};
use switchboard_a2a::ArtifactId;
use switchboard_a2a::card::AgentExtension;

use crate::behaviour::{Behaviour, Fallback};

/// Does what the suites expect of the agent behind a server under test.
#[derive(Clone, Debug)]
pub(crate) struct Conformance {
    /// What to do with a message whose id says nothing.
    pub(crate) fallback: Fallback,
    /// How long it works before it asks, where it says that it works at all.
    pub(crate) pause: Duration,
    /// Whether its card says that it streams.
    pub(crate) streaming: bool,
    /// An extension that callers must know.
    pub(crate) required_extension: Option<String>,
}

impl Agent for Conformance {
    fn manifest(&self) -> Manifest {
        let skill = Skill::new("conformance", "Conformance", "Behaves as the id of the message asks")
            .tags(&["testing", "conformance"])
            .examples(&["Hello from TCK"]);
        let extensions = self.required_extension.iter().map(|uri| AgentExtension {
            uri: uri.clone(),
            description: Some("Asked of every caller, to see that those without it are refused".to_owned()),
            required: true,
            params: None,
        });
        Manifest {
            input_modes: ["text/plain", "application/json"].map(str::to_owned).to_vec(),
            output_modes: ["text/plain", "application/json"].map(str::to_owned).to_vec(),
            streaming: self.streaming,
            replies: Replies::Either,
            extensions: extensions.collect(),
            ..Manifest::new("Conformance", "Answers the public A2A conformance suites")
        }
        .skill(skill)
    }

    async fn run(&self, turn: Turn, task: TaskHandle) -> Result<(), AgentError> {
        // An answer is treated as a first message would be, whether it comes to this run or to a new one: its own id
        // says whether the task ends or waits once more.
        let mut message = turn.message;
        loop {
            let question = match Behaviour::of(message.message_id.as_str(), self.fallback) {
                Behaviour::Complete => return Ok(task.complete_with("Hello from TCK").await?),
                Behaviour::CompleteSilently => return Ok(task.complete().await?),
                Behaviour::Produce(product) => {
                    task.artifact(product.artifact()?).await?;
                    return Ok(task.complete().await?);
                }
                Behaviour::WorkAndProduce(product) => {
                    task.working().await?;
                    task.artifact(product.artifact()?).await?;
                    return Ok(task.complete().await?);
                }
                Behaviour::Chunks => return chunks(&task).await,
                Behaviour::Reply => return Ok(task.reply(vec![Part::text("Direct message response")]).await?),
                Behaviour::Reject => return Ok(task.reject("rejected").await?),
                Behaviour::Work(time) => {
                    task.working().await?;
                    work(&task, time).await;
                    return Ok(task.complete().await?);
                }
                Behaviour::Ask => "What next?",
                Behaviour::WorkAndAsk => {
                    task.working().await?;
                    work(&task, self.pause).await;
                    "Anything else?"
                }
            };
            message = task.ask(question).await?;
        }
    }

    async fn recover(&self, view: &TaskView) -> Recovery {
        // An artifact that is out must not be produced once more under another id.
        if view.task.artifacts.is_empty() {
            Recovery::Resume
        } else {
            Recovery::Fail("the server stopped while the artifact was being produced".to_owned())
        }
    }
}

/// Works for a time, or until it is told to stop.
async fn work(task: &TaskHandle, time: Duration) {
    tokio::select! {
        () = tokio::time::sleep(time) => {}
        () = task.canceled() => {}
    }
}

/// One artifact in two pieces.
async fn chunks(task: &TaskHandle) -> Result<(), AgentError> {
    let artifact_id = ArtifactId::generate();
    let piece = |text: &str| Artifact { artifact_id: artifact_id.clone(), ..Artifact::text(text) };
    task.working().await?;
    task.chunk(piece("chunk-1 "), false, false, None).await?;
    task.chunk(piece("chunk-2"), true, true, None).await?;
    Ok(task.complete().await?)
}
