//! The guide agent: a conversation that shows INPUT_REQUIRED, and how it survives a restart.

use serde::{Deserialize, Serialize};
use switchboard_engine::{Agent, AgentError, Cause, Manifest, Recovery, Skill, Start, TaskHandle, TaskView, Turn};

/// Asks for a name and a topic, then explains the topic.
#[derive(Clone, Copy, Debug, Default)]
pub struct Guide;

/// The saved state, written before each question, so that any turn can continue from it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Notes {
    name: Option<String>,
}

/// What can be explained.
const TOPICS: [(&str, &str); 4] = [
    (
        "tasks",
        "Every message you send becomes part of a task. A task is its event log, kept on disk: it survives a restart, \
         and you can read it at any time with GetTask.",
    ),
    (
        "streams",
        "Send with SendStreamingMessage and you get each change as it happens. If the connection breaks, subscribe \
         again with the Last-Event-ID you saw last, and nothing is lost or repeated.",
    ),
    (
        "questions",
        "When I ask you something the task is in the state INPUT_REQUIRED. Send your answer with the task's id, and the \
         work goes on where it stopped, even days later.",
    ),
    (
        "agents",
        "An agent is any Rust type with a manifest and a run function. examples/hello-agent shows one in about ten lines.",
    ),
];

impl Agent for Guide {
    fn manifest(&self) -> Manifest {
        let skill = Skill::new("guide", "Guide", "Explains Switchboard in a short conversation")
            .tags(&["demo", "help", "multi-turn"])
            .examples(&["hi", "tell me about streams"]);
        Manifest {
            start: Start::WithCommit,
            ..Manifest::new("Guide", "Asks what you want to know about Switchboard, and tells you")
        }
        .skill(skill)
    }

    async fn run(&self, turn: Turn, task: TaskHandle) -> Result<(), AgentError> {
        let mut notes: Notes = turn.saved.as_ref().and_then(|saved| saved.read().ok()).unwrap_or_default();
        let mut said = turn.text();
        // A run that continues after a question finds the answer in its message.
        let mut answered = matches!(turn.cause, Cause::Answer { .. });
        if !answered {
            if let Some(explanation) = topic(&said) {
                return Ok(task.complete_with(explanation).await?);
            }
            said = task.ask("Hello! What is your name?").await?.joined_text();
            answered = true;
        }
        if notes.name.is_none() && answered {
            notes.name = Some(said.trim().chars().take(80).collect());
            task.save(&notes).await?;
            let name = notes.name.as_deref().unwrap_or_default();
            let question = format!("Nice to meet you, {name}. What shall I explain: {}?", names());
            said = task.ask(question).await?.joined_text();
        }
        loop {
            if let Some(explanation) = topic(&said) {
                return Ok(task.complete_with(explanation).await?);
            }
            said = task.ask(format!("I do not know that one. Please say one of: {}", names())).await?.joined_text();
        }
    }

    async fn recover(&self, _task: &TaskView) -> Recovery {
        Recovery::Resume
    }
}

fn names() -> String {
    TOPICS.map(|(name, _)| name).join(", ")
}

fn topic(said: &str) -> Option<&'static str> {
    let said = said.to_lowercase();
    TOPICS.iter().find(|(name, _)| said.contains(name)).map(|(_, explanation)| *explanation)
}
