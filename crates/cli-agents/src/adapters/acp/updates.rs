//! Session updates while an agent works on a prompt.
//!
//! Plans are not passed on: they are repeated whole with every small change, and the tool calls show the progress.

use agent_client_protocol_schema::v1::ToolCallUpdate;
use serde_json::Value;

use super::tools::Tools;
use super::usage::UsageCounter;
use crate::adapters::dialogue::Steps;
use crate::adapters::event::Event;
use crate::adapters::json::text;
use crate::adapters::messages::Messages;

#[derive(Default)]
pub(super) struct Updates {
    pub(super) messages: Messages,
    pub(super) tools: Tools,
    pub(super) usage: UsageCounter,
}

impl Updates {
    pub(super) fn new(resumed: bool, denied: Vec<&'static str>) -> Self {
        Self { messages: Messages::default(), tools: Tools::new(denied), usage: UsageCounter::new(resumed) }
    }

    /// One update. Kinds that are not known here are ignored.
    pub(super) fn update(&mut self, update: &Value, steps: &mut Steps) {
        let chunk = || update.pointer("/content/text").and_then(Value::as_str).unwrap_or_default();
        match text(update, "sessionUpdate") {
            "agent_message_chunk" => {
                self.tools.announce_pending(None, steps);
                let id = update.get("messageId").and_then(Value::as_str);
                self.messages.push_of(id, chunk().to_owned(), steps);
            }
            "agent_thought_chunk" if !chunk().is_empty() => {
                self.tools.announce_pending(None, steps);
                self.messages.end(steps);
                steps.event(Event::Reasoning { text: chunk().to_owned() });
            }
            "tool_call" | "tool_call_update" => {
                // One type for both: agents announce calls without the title that the other type wants.
                if let Ok(update) = serde_json::from_value::<ToolCallUpdate>(update.clone()) {
                    self.messages.end(steps);
                    self.tools.update(update, steps);
                }
            }
            "usage_update" => {
                self.tools.announce_pending(None, steps);
                self.usage.update(update, steps);
            }
            "notice" => {
                let [title, description] = ["title", "description"].map(|name| text(update, name));
                let text = format!("{title}\n{description}").trim().to_owned();
                if !text.is_empty() {
                    steps.event(Event::Notice { text });
                }
            }
            _ => {}
        }
    }

    /// The turn is over: ends the open message and the open calls.
    pub(super) fn close(&mut self, steps: &mut Steps) {
        self.messages.end(steps);
        self.tools.close(steps);
    }
}
