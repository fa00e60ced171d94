//! An agent that asks as the first word of a message says, and ends with what it was told.

use std::time::Duration;

use serde_json::json;
use switchboard_a2a::{Json, Message, Part, PartContent, Role, TaskState};
use switchboard_engine::clock::later;
use switchboard_engine::{
    Agent, AgentError, Cause, ExpiryAction, Manifest, Review, Reviewer, Stopped, TaskHandle, Turn, Verdict,
};

use crate::running::START;

pub(super) struct Questioner;

impl Agent for Questioner {
    fn manifest(&self) -> Manifest {
        Manifest::new("Questioner", "Asks")
    }

    async fn run(&self, turn: Turn, task: TaskHandle) -> Result<(), AgentError> {
        if !matches!(turn.cause, Cause::Begin) {
            return Ok(task.complete_with(told(turn.verdict, &turn.message)).await?);
        }
        let text = turn.text();
        let mut words = text.split(' ');
        let told = match words.next().unwrap_or_default() {
            "choose" => {
                let options = json!({ "options": ["red", { "id": "b", "label": "Blue" }] });
                told(None, &task.ask_message(with_data("which colour?", &options)).await?)
            }
            "approval" => {
                let allow = words.next().unwrap_or("allow");
                let options = [("allow", allow), ("always", "always"), ("deny", "deny")];
                let options = options.map(|(label, id)| json!({ "id": id, "label": label }));
                let data = json!({ "approvalId": "a-1", "tool": "Bash", "options": options, "omittedCharacters": 7 });
                told(None, &task.ask_message(with_data("Approve: rm -r build?", &data)).await?)
            }
            "sign-in" => told(None, &task.authorize("sign in first").await?),
            "long" => told(None, &task.ask("x".repeat(200_000)).await?),
            // `gate reject 60`: decides itself so after so many seconds.
            reviewed @ ("gate" | "operators") => {
                let then = match words.next().unwrap_or_default() {
                    "approve" => ExpiryAction::Approve,
                    "reject" => ExpiryAction::Reject,
                    "escalate" => ExpiryAction::Escalate,
                    _ => ExpiryAction::Fail,
                };
                let seconds = words.next().and_then(|seconds| seconds.parse().ok());
                let expires_at = seconds.map(|seconds| later(START, Duration::from_secs(seconds)));
                let is_gate = reviewed == "gate";
                let (mode, skill) = (is_gate.then(|| "gated".to_owned()), is_gate.then(|| "deploy".to_owned()));
                let review = Review { mode, skill, expires_at, then, ..Review::by(Reviewer::Operator, turn.seq) };
                let answer = task.ask_with(Message::text(Role::Agent, "may I deploy?"), &review).await?;
                told(answer.decision.as_ref().map(|decision| decision.verdict), &answer.message)
            }
            "wait" => {
                task.working().await?;
                told(None, &task.next_message().await?)
            }
            "ask" => match task.ask("what now?").await {
                Err(Stopped::Settled) => "settled".to_owned(),
                answer => told(None, &answer?),
            },
            _ => return Ok(task.say(TaskState::Completed, Some(Message::text(Role::Agent, text)), None).await?),
        };
        Ok(task.complete_with(told).await?)
    }
}

fn with_data(text: &str, data: &serde_json::Value) -> Message {
    let mut message = Message::text(Role::Agent, text);
    message.parts.push(Part::data(Json::from_serialize(data).unwrap()));
    message
}

/// The verdict, the words and the data of an answer.
fn told(verdict: Option<Verdict>, answer: &Message) -> String {
    let verdict = verdict.map(|verdict| format!("{verdict:?}: ")).unwrap_or_default();
    let parts = answer.parts.iter().map(|part| match &part.content {
        PartContent::Text(text) => text.clone(),
        PartContent::Data(data) => data.as_str().to_owned(),
        _ => "a file".to_owned(),
    });
    format!("{verdict}{}", parts.collect::<Vec<_>>().join(" + "))
}
