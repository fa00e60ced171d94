//! OpenAI Responses, as Codex speaks it. The whole conversation comes with every request.

use serde_json::{Value, json};

use super::{Events, list, named_event, text, texts, usage};
use crate::conversation::{Conversation, Turn};
use crate::tools::Call;

pub(crate) fn read(body: &Value) -> Conversation {
    let tools: Vec<String> = list(body, "tools").map(|tool| text(tool, "name").to_owned()).collect();
    Conversation {
        model: text(body, "model").to_owned(),
        turns: list(body, "input").filter_map(turn).collect(),
        is_side: tools.is_empty(),
        tools,
        is_streamed: body.get("stream").and_then(Value::as_bool).unwrap_or_default(),
        wants_json: body.pointer("/text/format").is_some(),
    }
}

fn turn(item: &Value) -> Option<Turn> {
    match text(item, "type") {
        "message" if text(item, "role") == "user" => Some(Turn::User(texts(item, "content"))),
        "message" if text(item, "role") == "assistant" => Some(Turn::Assistant),
        "function_call" => Some(Turn::Assistant),
        "function_call_output" => Some(Turn::Tool(texts(item, "output").concat())),
        _ => None,
    }
}

pub(crate) struct Writer {
    number: usize,
    /// The item is given whole at its end.
    said: Option<String>,
}

impl Writer {
    pub(crate) fn new(number: usize) -> Self {
        Self { number, said: None }
    }

    fn message(&self, status: &str, content: &Value) -> Value {
        let id = format!("item_{}", self.number);
        json!({ "type": "message", "id": id, "role": "assistant", "status": status, "content": content })
    }

    fn close_text(&mut self) -> String {
        let Some(said) = self.said.take() else { return String::new() };
        item_done(&self.message("completed", &json!([{ "type": "output_text", "text": said }])))
    }
}

impl Events for Writer {
    fn begin(&mut self) -> String {
        named(json!({ "type": "response.created", "response": { "id": format!("resp_{}", self.number) } }))
    }

    fn thought(&mut self, thought: &str) -> String {
        let id = format!("rs_{}", self.number);
        let added = item_added(&json!({ "type": "reasoning", "id": id, "summary": [] }));
        let delta = named(json!({
            "type": "response.reasoning_summary_text.delta",
            "item_id": id, "output_index": 0, "summary_index": 0, "delta": thought,
        }));
        let summary = json!([{ "type": "summary_text", "text": thought }]);
        added + &delta + &item_done(&json!({ "type": "reasoning", "id": id, "summary": summary }))
    }

    fn text(&mut self, piece: &str) -> String {
        let mut events = String::new();
        if self.said.is_none() {
            events = item_added(&self.message("in_progress", &json!([])));
        }
        self.said.get_or_insert_default().push_str(piece);
        let delta = json!({
            "type": "response.output_text.delta",
            "item_id": format!("item_{}", self.number), "output_index": 0, "content_index": 0, "delta": piece,
        });
        events + &named(delta)
    }

    fn call(&mut self, call: &Call) -> String {
        let number = self.number;
        let mut item = json!({
            "type": "function_call", "id": format!("fc_{number}"), "call_id": format!("call_{number}"),
            "name": call.name, "arguments": call.arguments.to_string(),
        });
        if let Some(namespace) = &call.namespace {
            item["namespace"] = namespace.as_str().into();
        }
        self.close_text() + &item_done(&item)
    }

    fn end(&mut self) -> String {
        let response = json!({
            "id": format!("resp_{}", self.number),
            "usage": {
                "input_tokens": usage::INPUT, "input_tokens_details": { "cached_tokens": usage::CACHED },
                "output_tokens": usage::OUTPUT, "output_tokens_details": { "reasoning_tokens": 0 },
                "total_tokens": usage::INPUT + usage::OUTPUT,
            },
        });
        self.close_text() + &named(json!({ "type": "response.completed", "response": response }))
    }
}

fn item_added(item: &Value) -> String {
    named(json!({ "type": "response.output_item.added", "output_index": 0, "item": item }))
}

fn item_done(item: &Value) -> String {
    named(json!({ "type": "response.output_item.done", "output_index": 0, "item": item }))
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
        let message = |role: &str, text: &str| json!({ "type": "message", "role": role, "content": [{ "type": "input_text", "text": text }] });
        let body = json!({
            "model": "fake-model", "stream": true, "tools": [{ "type": "function", "name": "exec_command" }],
            "input": [
                message("developer", "You are an agent."),
                message("user", "<environment_context>x"),
                message("user", "Run."),
                { "type": "reasoning", "summary": [] },
                { "type": "function_call", "call_id": "call_1", "name": "exec_command", "arguments": "{}" },
                { "type": "function_call_output", "call_id": "call_1", "output": "ran" },
            ],
        });
        let asked = read(&body);
        assert_eq!(asked.prompt(), Prompt { text: "Run.", results: vec!["ran"] });
        assert_eq!((asked.is_streamed, asked.is_side, asked.model.as_str()), (true, false, "fake-model"));
    }
}
