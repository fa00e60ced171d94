//! Anthropic Messages, as Claude Code speaks it. Its side calls have no tools or want one token only, and after a stream
//! that was cut it asks again for an answer in one piece.

use serde_json::{Value, json};

use super::{Events, list, named_event, text, texts, usage};
use crate::answer::{Reply, Then};
use crate::conversation::{Conversation, Turn};
use crate::tools::Call;

pub(crate) fn read(body: &Value) -> Conversation {
    let tools: Vec<String> = list(body, "tools").map(|tool| text(tool, "name").to_owned()).collect();
    let is_side = tools.is_empty() || body.get("max_tokens").and_then(Value::as_u64) == Some(1);
    Conversation {
        model: text(body, "model").to_owned(),
        turns: list(body, "messages").flat_map(turns).collect(),
        tools,
        is_streamed: body.get("stream").and_then(Value::as_bool).unwrap_or_default(),
        is_side,
        wants_json: body.pointer("/output_config/format").is_some(),
    }
}

/// What tools answered comes in messages of the user, before what the user says.
fn turns(message: &Value) -> Vec<Turn> {
    if text(message, "role") == "assistant" {
        return vec![Turn::Assistant];
    }
    let results = list(message, "content").filter(|block| text(block, "type") == "tool_result");
    let mut turns: Vec<Turn> = results.map(|block| Turn::Tool(texts(block, "content").concat())).collect();
    if text(message, "role") == "user" {
        turns.push(Turn::User(texts(message, "content")));
    }
    turns
}

pub(crate) struct Writer {
    model: String,
    number: usize,
    /// How many blocks were begun.
    blocks: u32,
    is_text_open: bool,
    has_called: bool,
}

impl Writer {
    pub(crate) fn new(model: &str, number: usize) -> Self {
        Self { model: model.to_owned(), number, blocks: 0, is_text_open: false, has_called: false }
    }

    fn block_start(&mut self, block: &Value) -> String {
        let event = named(json!({ "type": "content_block_start", "index": self.blocks, "content_block": block }));
        self.blocks += 1;
        event
    }

    /// To the block that was begun last.
    fn delta(&self, delta: &Value) -> String {
        let index = self.blocks.saturating_sub(1);
        named(json!({ "type": "content_block_delta", "index": index, "delta": delta }))
    }

    fn block_stop(&self) -> String {
        named(json!({ "type": "content_block_stop", "index": self.blocks.saturating_sub(1) }))
    }

    fn close_text(&mut self) -> String {
        if std::mem::take(&mut self.is_text_open) { self.block_stop() } else { String::new() }
    }
}

impl Events for Writer {
    fn begin(&mut self) -> String {
        let mut message = message(&self.model, self.number);
        message["content"] = json!([]);
        named(json!({ "type": "message_start", "message": message })) + &named(json!({ "type": "ping" }))
    }

    fn thought(&mut self, thought: &str) -> String {
        let start = self.block_start(&json!({ "type": "thinking", "thinking": "", "signature": "" }));
        let thought = self.delta(&json!({ "type": "thinking_delta", "thinking": thought }));
        let signature = self.delta(&json!({ "type": "signature_delta", "signature": SIGNATURE }));
        start + &thought + &signature + &self.block_stop()
    }

    fn text(&mut self, piece: &str) -> String {
        let mut events = String::new();
        if !self.is_text_open {
            events = self.block_start(&json!({ "type": "text", "text": "" }));
            self.is_text_open = true;
        }
        events + &self.delta(&json!({ "type": "text_delta", "text": piece }))
    }

    fn call(&mut self, call: &Call) -> String {
        self.has_called = true;
        let closed = self.close_text();
        let mut block = tool_use(call, self.number);
        block["input"] = json!({});
        let start = self.block_start(&block);
        let arguments = json!({ "type": "input_json_delta", "partial_json": call.arguments.to_string() });
        closed + &start + &self.delta(&arguments) + &self.block_stop()
    }

    fn end(&mut self) -> String {
        let closed = self.close_text();
        let reason = stop_reason(self.has_called);
        let delta = json!({ "stop_reason": reason, "stop_sequence": null });
        let usage = json!({ "output_tokens": usage::OUTPUT });
        let delta = named(json!({ "type": "message_delta", "delta": delta, "usage": usage }));
        closed + &delta + &named(json!({ "type": "message_stop" }))
    }
}

pub(crate) fn whole(model: &str, number: usize, reply: &Reply) -> Value {
    let mut content = Vec::new();
    if let Some(thought) = &reply.thought {
        content.push(json!({ "type": "thinking", "thinking": thought, "signature": SIGNATURE }));
    }
    content.push(match &reply.then {
        Then::Say(pieces) => json!({ "type": "text", "text": pieces.whole() }),
        Then::Call(call) => tool_use(call, number),
    });
    let mut message = message(model, number);
    message["content"] = json!(content);
    message["stop_reason"] = json!(stop_reason(matches!(reply.then, Then::Call(_))));
    message["usage"]["output_tokens"] = json!(usage::OUTPUT);
    message
}

/// Some text in base64; only the vendor can check it.
const SIGNATURE: &str = "ZmFrZQ==";

fn message(model: &str, number: usize) -> Value {
    json!({
        "id": format!("msg_{number}"), "type": "message", "role": "assistant", "model": model,
        "stop_reason": null, "stop_sequence": null,
        "usage": {
            "input_tokens": usage::INPUT, "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": usage::CACHED, "output_tokens": 1,
        },
    })
}

fn tool_use(call: &Call, number: usize) -> Value {
    json!({ "type": "tool_use", "id": format!("toolu_{number}"), "name": call.name, "input": call.arguments })
}

fn stop_reason(has_called: bool) -> &'static str {
    if has_called { "tool_use" } else { "end_turn" }
}

/// Each event is named after its type.
fn named(data: Value) -> String {
    named_event(text(&data, "type"), &data)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::Prompt;

    #[test]
    fn a_request_is_read() {
        let body = json!({
            "model": "claude", "stream": true, "max_tokens": 32000, "tools": [{ "name": "Bash" }],
            "messages": [
                { "role": "user", "content": [{ "type": "text", "text": "<system-reminder>x" }, { "type": "text", "text": "Run." }] },
                { "role": "assistant", "content": [{ "type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {} }] },
                { "role": "user", "content": [
                    { "type": "tool_result", "tool_use_id": "toolu_1", "content": [{ "type": "text", "text": "ran" }] },
                    { "type": "text", "text": "<system-reminder>y" },
                ] },
            ],
        });
        let asked = read(&body);
        assert_eq!(asked.prompt(), Prompt { text: "Run.", results: vec!["ran"] });
        assert_eq!((asked.is_streamed, asked.is_side, asked.tools), (true, false, vec!["Bash".to_owned()]));
    }

    #[test]
    fn side_calls_are_recognised() {
        let titled =
            json!({ "tools": [], "max_tokens": 32000, "output_config": { "format": { "type": "json_schema" } } });
        assert!(read(&titled).is_side && read(&titled).wants_json);
        assert!(read(&json!({ "tools": [{ "name": "Bash" }], "max_tokens": 1 })).is_side);
    }
}
