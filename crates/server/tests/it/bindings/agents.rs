//! Agents for tests. One of them does what its text says, so that a test reads as its conversation.

use std::sync::Arc;

use switchboard_a2a::{Artifact, Part};
use switchboard_engine::{Agent, AgentError, Hosted, Manifest, Replies, Skill, TaskHandle, Traceparent, Turn};
use tokio::sync::Semaphore;

/// Does what its text says.
pub(crate) struct Obedient {
    pub(crate) manifest: Manifest,
    /// `gate` waits here, so that a test decides when it goes on.
    pub(crate) gate: Arc<Semaphore>,
}

impl Agent for Obedient {
    fn manifest(&self) -> Manifest {
        self.manifest.clone()
    }

    async fn run(&self, turn: Turn, task: TaskHandle) -> Result<(), AgentError> {
        let text = turn.text();
        match text.as_str() {
            "hello" => {
                task.working().await?;
                task.artifact(Artifact::text("hello back").named("greeting")).await?;
                task.complete().await?;
            }
            "ask" => {
                let answer = task.ask("which city?").await?;
                task.complete_with(format!("city: {}", answer.joined_text())).await?;
            }
            "auth" => {
                task.authorize("log in first").await?;
                task.complete_with("logged in").await?;
            }
            "auth then ask" => {
                task.authorize("log in first").await?;
                task.ask("which city?").await?;
                task.complete().await?;
            }
            "metadata" => {
                let metadata = serde_json::to_string(&turn.metadata).unwrap_or_default();
                task.complete_with(metadata).await?;
            }
            "trace" => {
                let said = turn.trace.as_deref().map(|trace| {
                    let traceparent = trace.traceparent.as_ref().map(Traceparent::as_str);
                    [trace.correlation_id.as_deref(), trace.parent_id.as_deref(), traceparent]
                        .map(|id| id.unwrap_or("none"))
                });
                task.complete_with(said.map_or("no trace".to_owned(), |ids| ids.join(" / "))).await?;
            }
            "hold" => {
                task.working().await?;
                task.canceled().await;
                return Err(AgentError::new("stopped"));
            }
            "gate" => {
                task.working().await?;
                for chunk in ["one", "two"] {
                    self.pass().await;
                    task.text(chunk).await?;
                }
                self.pass().await;
                task.complete().await?;
            }
            "wait" => {
                self.pass().await;
                task.complete_with("waited").await?;
            }
            "say" => task.reply(vec![Part::text("said directly")]).await?,
            "wait, then say" => {
                self.pass().await;
                task.reply(vec![Part::text("said late")]).await?;
            }
            "fail" => task.fail("it broke").await?,
            "reject" => task.reject("will not").await?,
            other => task.complete_with(format!("echo: {other}")).await?,
        }
        Ok(())
    }
}

impl Obedient {
    async fn pass(&self) {
        if let Ok(permit) = self.gate.acquire().await {
            permit.forget();
        }
    }
}

/// A manifest with one public and one private skill.
pub(crate) fn manifest(name: &str, replies: Replies) -> Manifest {
    let mut manifest = Manifest::new(name, format!("The test agent {name}"));
    manifest.version = "1.2.3".to_owned();
    manifest.replies = replies;
    let public = Skill::new("talk", "Talk", "Does what the text says").tags(&["test"]).examples(&["hello"]);
    let private = Skill { private: true, ..Skill::new("secret", "Secret", "For known callers").tags(&["test"]) };
    manifest.skill(public).skill(private)
}

/// The agents most tests run with: one that makes tasks, one that talks, one that does either.
pub(crate) fn usual(gate: &Arc<Semaphore>) -> Vec<Hosted> {
    [("worker", Replies::Task), ("talker", Replies::Message), ("either", Replies::Either)]
        .map(|(name, replies)| Hosted::new(name, Obedient { manifest: manifest(name, replies), gate: gate.clone() }))
        .into()
}
