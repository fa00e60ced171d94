//! The agent of most tests: it does what the first word of a message says.

use serde_json::json;
use switchboard_a2a::card::AgentExtension;
use switchboard_a2a::extension::confidence::Confidence;
use switchboard_a2a::extension::cost::{Cost, TokenUsage};
use switchboard_a2a::extension::effect_domain::Effect;
use switchboard_a2a::extension::worldstate_delta::WorldstateDelta;
use switchboard_a2a::extension::{Emit, Payload};
use switchboard_a2a::{Artifact, Json, Message, Role, TaskState};
use switchboard_engine::{Agent, AgentError, Call, Manifest, Skill, TaskHandle, Traceparent, Turn, Usage};

/// Does as it is told.
pub(crate) struct Actor;

impl Agent for Actor {
    fn manifest(&self) -> Manifest {
        let mut moving = Skill::new("moving", "Moving", "Says that it has closed something");
        moving.effects = vec![Effect { domain: "board".into(), path: "open".into(), delta: -1.0, confidence: 0.8 }];
        let mut manifest = Manifest::new("Actor", "Does as it is told").skill(Skill::new("acting", "Acting", "Acts"));
        manifest.skills.push(moving);
        manifest.extensions.push(Cost::extension());
        manifest.extensions.push(AgentExtension { uri: Confidence::URI.to_owned(), ..AgentExtension::default() });
        switchboard_fleet::declare_effects(&mut manifest);
        manifest
    }

    async fn run(&self, turn: Turn, task: TaskHandle) -> Result<(), AgentError> {
        let text = turn.text();
        match text.split(' ').next().unwrap_or_default() {
            "fail" => task.fail("as it was told to").await?,
            "ask" => {
                let answer = task.ask("what now?").await?;
                task.complete_with(answer.joined_text()).await?;
            }
            "approve" => {
                let answer = task.authorize("may it be?").await?;
                task.complete_with(answer.joined_text()).await?;
            }
            "permit" => {
                let mut question = Message::text(Role::Agent, "may it run?");
                let approval = json!({ "approvalId": "a", "tool": "rm" });
                question.parts.push(switchboard_a2a::Part::data(Json::from_serialize(&approval).unwrap()));
                let answer = task.ask_message(question).await?;
                task.complete_with(answer.joined_text()).await?;
            }
            "token" => {
                let token = task.issue_token().await.map_err(|error| AgentError::new(error.to_string()))?;
                task.status(token.unwrap_or_default()).await?;
                let more = task.next_message().await?;
                task.complete_with(more.joined_text()).await?;
            }
            "wait" => {
                task.say(TaskState::Working, None, None).await?;
                let more = task.next_message().await?;
                task.complete_with(more.joined_text()).await?;
            }
            "leave" => {
                let message = Message::text(Role::User, "wait");
                task.call(Call::new("other", message)).await.map_err(|error| AgentError::new(error.to_string()))?;
                task.fail("it leaves a child").await?;
            }
            "spend" => {
                let input_tokens = text.split(' ').nth(1).and_then(|tokens| tokens.parse().ok()).unwrap_or(1_000);
                let usage = Usage { input_tokens, output_tokens: 100, cost_usd: 0.0 };
                task.usage(usage).await?;
                task.complete_with("spent").await?;
            }
            "model" => {
                let usage = TokenUsage { input_tokens: 1_000, output_tokens: 100, ..TokenUsage::default() };
                let mut words = text.split(' ').skip(1);
                let model = words.next().map(str::to_owned);
                let cost_usd = words.next().and_then(|cost| cost.parse().ok());
                let mut artifact = Artifact::text("done");
                let cost = Cost { usage: Some(usage), model, cost_usd, ..Cost::default() };
                cost.write_to_artifact(&mut artifact, task.emit());
                task.artifact(artifact).await?;
                task.complete_with("done").await?;
            }
            "trace" => {
                let traceparent = turn.trace.as_deref().and_then(|trace| trace.traceparent.as_ref());
                task.complete_with(traceparent.map_or("none", Traceparent::as_str)).await?;
            }
            "pay" => {
                let cost_usd = text.split(' ').nth(1).and_then(|cost| cost.parse().ok()).unwrap_or(1.0);
                task.usage(Usage { input_tokens: 10, output_tokens: 1, cost_usd }).await?;
                task.complete_with("paid").await?;
            }
            "sure" => {
                let mut words = text.split(' ').skip(1);
                let confidence = words.next().and_then(|number| number.parse().ok()).unwrap_or(1.0);
                let mut artifact = Artifact::text("sure");
                let confidence = Confidence { confidence, explanation: None, success: None };
                confidence.write_to_artifact(&mut artifact, task.emit());
                task.artifact(artifact).await?;
                match words.next() {
                    Some("fail") => task.fail("it was sure").await?,
                    _ => task.complete_with("done").await?,
                }
            }
            "steps" => {
                let count = text.split(' ').nth(1).and_then(|count| count.parse::<u32>().ok()).unwrap_or(1);
                for step in 0..count {
                    task.say(TaskState::Working, None, None).await?;
                    // Each is a row of its own.
                    task.save_committed(&step).await?;
                }
                task.complete_with("there").await?;
            }
            "change" => {
                let mut words = text.split(' ').skip(1);
                let value = words.next().and_then(|value| value.parse::<i64>().ok()).unwrap_or(0);
                let path = words.next().unwrap_or("open");
                let deltas = json!({ "deltas": [{ "domain": "board", "path": path, "op": "inc", "value": value }] });
                let mut artifact = Artifact::text("changed");
                WorldstateDelta::read(&Json::from_serialize(&deltas).unwrap())
                    .unwrap()
                    .write_to_artifact(&mut artifact, Emit::Newest);
                task.artifact(artifact).await?;
                task.complete_with("changed").await?;
            }
            _ => task.complete_with(text.to_uppercase()).await?,
        }
        Ok(())
    }
}
