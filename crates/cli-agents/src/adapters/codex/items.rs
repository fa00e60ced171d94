//! The items of a turn: messages, reasoning and calls that begin and end. `exec` and the app server have the same ones:
//! the first writes their members with underscores, the second in camel case.

mod call;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

pub(super) use call::{Call, SHELL, TYPED, TYPED_SOURCE, bare, changes, failed, mcp_tool, permission, shell_input};

use super::failure;
use crate::adapters::dialogue::Steps;
use crate::adapters::event::{Event, Scope, Usage};
use crate::adapters::json::text;
use crate::adapters::messages::Messages;

/// So many items are remembered at once. No honest turn comes near it.
const MOST: usize = 1000;

#[derive(Default)]
pub(super) struct Items {
    /// Calls that have begun and not ended, by item.
    calls: BTreeMap<String, Call>,
    /// Messages and reasoning that were streamed and must not be repeated as a whole.
    streamed: BTreeSet<String>,
    messages: Messages,
    answer: Option<String>,
    plan: String,
}

impl Items {
    pub(super) fn started(&mut self, item: &Value, steps: &mut Steps) {
        if kind(item) == "todo_list" {
            return self.planned(item, "items", steps);
        }
        let id = text(item, "id");
        // What is searched for is known only at the end.
        if matches!(kind(item), "web_search" | "webSearch") || self.calls.contains_key(id) || self.calls.len() >= MOST {
            return;
        }
        if let Some(call) = Call::of(item) {
            steps.event(call.use_event(id));
            self.calls.insert(id.to_owned(), call);
        }
    }

    /// The call of an item, and whether its approval was requested. Subagents may reuse an id.
    pub(super) fn call_of(&self, item: &Value) -> Option<Call> {
        let mut call = Call::of(item)?;
        let begun = self.calls.get(text(item, "id"));
        call.asked = begun.is_some_and(|begun| begun.asked && begun.tool == call.tool);
        Some(call)
    }

    pub(super) fn mark_asked(&mut self, ids: &[String]) {
        for id in ids {
            if let Some(call) = self.calls.get_mut(id) {
                call.asked = true;
            }
        }
    }

    pub(super) fn updated(&mut self, item: &Value, steps: &mut Steps) {
        if kind(item) == "todo_list" {
            self.planned(item, "items", steps);
        }
    }

    /// An item has ended. The call that it was is given back, if it was one.
    pub(super) fn completed(&mut self, item: &Value, steps: &mut Steps) -> Option<Call> {
        let id = text(item, "id");
        match kind(item) {
            "agent_message" | "agentMessage" => self.message(id, text(item, "text"), steps),
            "reasoning" => self.reasoning(id, item, steps),
            "todo_list" => self.planned(item, "items", steps),
            // A warning, in spite of its name.
            "error" => steps.event(Event::Notice { text: failure::readable(text(item, "message")) }),
            _ => return self.call_completed(item, steps),
        }
        None
    }

    /// The same for an item that is passed on only if it is a call.
    pub(super) fn call_completed(&mut self, item: &Value, steps: &mut Steps) -> Option<Call> {
        let call = self.call_of(item)?;
        let id = text(item, "id");
        if self.calls.remove(id).is_none() {
            steps.event(call.use_event(id));
        }
        steps.event(call.result_event(id, item));
        let paths = call::changed_files(item);
        if !paths.is_empty() {
            steps.event(Event::FilesChanged { paths });
        }
        Some(call)
    }

    pub(super) fn message_delta(&mut self, id: &str, piece: &str, steps: &mut Steps) {
        if !piece.is_empty() && self.streams(id) {
            self.messages.push_of(Some(id), piece.to_owned(), steps);
        }
    }

    pub(super) fn reasoning_delta(&mut self, id: &str, piece: &str, steps: &mut Steps) {
        if !piece.is_empty() && self.streams(id) {
            steps.event(Event::Reasoning { text: piece.to_owned() });
        }
    }

    /// Another part of the reasoning begins.
    pub(super) fn reasoning_part(&mut self, id: &str, steps: &mut Steps) {
        if self.streamed.contains(id) {
            steps.event(Event::Reasoning { text: "\n\n".to_owned() });
        }
    }

    /// A plan: entries in `items` or `plan`, each with a text and whether it is done.
    pub(super) fn planned(&mut self, holder: &Value, list: &str, steps: &mut Steps) {
        let Some(list) = holder.get(list).and_then(Value::as_array) else { return };
        let entries: Vec<String> = list.iter().map(plan_entry).collect();
        let plan = format!("plan: {}", entries.join("; "));
        if !entries.is_empty() && plan != self.plan {
            self.plan.clone_from(&plan);
            steps.event(Event::Notice { text: plan });
        }
    }

    pub(super) fn call(&self, id: &str) -> Option<&Call> {
        self.calls.get(id)
    }

    pub(super) fn calls(&self) -> impl Iterator<Item = (&String, &Call)> {
        self.calls.iter()
    }

    /// The turn has ended: the last message is its answer.
    pub(super) fn end(&mut self, steps: &mut Steps) -> Option<String> {
        self.messages.end(steps);
        self.answer.take()
    }

    fn message(&mut self, id: &str, whole: &str, steps: &mut Steps) {
        if !self.streamed.remove(id) {
            self.messages.end(steps);
            self.messages.push(whole.to_owned(), steps);
        }
        self.messages.end(steps);
        self.answer = Some(whole.to_owned());
    }

    fn reasoning(&mut self, id: &str, item: &Value, steps: &mut Steps) {
        if self.streamed.remove(id) {
            return;
        }
        let parts = |member: &str| match item.get(member) {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Array(parts)) => parts.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("\n\n"),
            _ => String::new(),
        };
        let whole = ["text", "summary", "content"].into_iter().map(parts).find(|text| !text.is_empty());
        if let Some(text) = whole {
            steps.event(Event::Reasoning { text });
        }
    }

    /// Whether an item is streamed. One that is not is passed on as a whole at its end.
    fn streams(&mut self, id: &str) -> bool {
        self.streamed.contains(id) || (self.streamed.len() < MOST && self.streamed.insert(id.to_owned()))
    }
}

/// A member that is a text, under the first of its two names that is one; else nothing.
pub(super) fn either_text<'a>(holder: &'a Value, name: &str, other: &str) -> &'a str {
    [name, other].into_iter().find_map(|name| holder.get(name).and_then(Value::as_str)).unwrap_or_default()
}

/// What a conversation has cost since it began, under either set of names. Cached tokens are among those read.
pub(super) fn usage(tokens: &Value) -> Option<Usage> {
    let tokens = tokens.as_object()?;
    let count = |name: &str, other: &str| {
        [name, other].into_iter().find_map(|name| tokens.get(name).and_then(Value::as_u64)).unwrap_or_default()
    };
    Some(Usage {
        scope: Scope::Session,
        input_tokens: count("input_tokens", "inputTokens"),
        cached_tokens: count("cached_input_tokens", "cachedInputTokens"),
        output_tokens: count("output_tokens", "outputTokens"),
        reasoning_tokens: count("reasoning_output_tokens", "reasoningOutputTokens"),
        cost_usd: None,
    })
}

fn kind(item: &Value) -> &str {
    text(item, "type")
}

fn plan_entry(entry: &Value) -> String {
    let done = entry.get("completed") == Some(&Value::Bool(true)) || text(entry, "status") == "completed";
    format!("[{}] {}", if done { 'x' } else { ' ' }, either_text(entry, "text", "step"))
}
