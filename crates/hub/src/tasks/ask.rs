//! `~ask`: asks a person what a program wants to know. The question is the task's own, so it waits for days, survives a
//! restart and is decided in the inbox like any other; the program that asked may have stopped waiting long ago.

use switchboard_a2a::{Json, Message, Part, Role};
use switchboard_engine::{
    Agent, AgentError, CallerId, Manifest, Recovery, Review, Reviewer, TaskHandle, TaskView, Turn, Verdict,
};

use serde::{Deserialize, Serialize};

use crate::inbox::verdict_name;

/// The name of the agent.
pub const ASK: &str = "~ask";

/// The agent that asks people.
pub struct Ask;

/// What stands beside the words of an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct HumanAnswer {
    pub(crate) answer: String,
    pub(crate) decision: String,
    /// Nobody, if the time has decided it.
    pub(crate) decided_by: Option<CallerId>,
}

impl HumanAnswer {
    /// The one that a task of this agent has ended with.
    pub(crate) fn of(end: &Message) -> Option<Self> {
        end.parts.iter().filter_map(Part::as_data).find_map(|data| data.read().ok())
    }
}

impl Agent for Ask {
    fn manifest(&self) -> Manifest {
        let any = vec!["*/*".to_owned()];
        let manifest = Manifest::new("Ask", "Asks a person");
        Manifest { input_modes: any.clone(), output_modes: any, ..manifest }
    }

    async fn run(&self, turn: Turn, task: TaskHandle) -> Result<(), AgentError> {
        // The answer, where the question has outlived the run that has asked it.
        if let Some(verdict) = turn.verdict {
            return end(&task, &turn.message, verdict, turn.by).await;
        }
        let question = Message { role: Role::Agent, ..Message::text(Role::Agent, "") };
        let question = Message { parts: turn.message.parts, ..question };
        let answer = task.ask_with(question, &Review::by(Reviewer::Operator, turn.seq)).await?;
        let verdict = answer.decision.as_ref().map_or(Verdict::Answer, |decision| decision.verdict);
        end(&task, &answer.message, verdict, answer.by.clone()).await
    }

    async fn recover(&self, _task: &TaskView) -> Recovery {
        Recovery::Resume
    }
}

/// Ends the task with the answer.
async fn end(task: &TaskHandle, said: &Message, verdict: Verdict, by: Option<CallerId>) -> Result<(), AgentError> {
    let answer = said.joined_text();
    let mut message = Message::text(Role::Agent, answer.clone());
    let data = HumanAnswer { answer, decision: verdict_name(verdict).to_owned(), decided_by: by };
    message.parts.extend(Json::from_serialize(&data).map(Part::data));
    Ok(task.complete_message(message).await?)
}
