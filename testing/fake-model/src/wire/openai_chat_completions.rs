//! OpenAI Chat Completions, as opencode speaks it. It asks for a title beside the first turn, without tools.

use serde_json::{Value, json};

use super::{Events, event, list, text, texts, usage};
use crate::conversation::{Conversation, Turn};
use crate::tools::Call;

pub(crate) fn read(body: &Value) -> Conversation {
    let name = |tool: &Value| tool.pointer("/function/name").and_then(Value::as_str).unwrap_or_default().to_owned();
    let tools: Vec<String> = list(body, "tools").map(name).collect();
    Conversation {
        model: text(body, "model").to_owned(),
        turns: list(body, "messages").filter_map(turn).collect(),
        is_side: tools.is_empty(),
        tools,
        is_streamed: body.get("stream").and_then(Value::as_bool).unwrap_or_default(),
        wants_json: body.get("response_format").is_some(),
    }
}

fn turn(message: &Value) -> Option<Turn> {
    match text(message, "role") {
        "user" => Some(Turn::User(texts(message, "content"))),
        "assistant" => Some(Turn::Assistant),
        "tool" => Some(Turn::Tool(texts(message, "content").concat())),
        _ => None,
    }
}

pub(crate) struct Writer {
    model: String,
    number: usize,
    has_called: bool,
}

impl Writer {
    pub(crate) fn new(model: &str, number: usize) -> Self {
        Self { model: model.to_owned(), number, has_called: false }
    }

    fn chunk(&self, delta: &Value, finish_reason: Option<&str>) -> Value {
        json!({
            "id": format!("chatcmpl-{}", self.number), "object": "chat.completion.chunk", "created": 1, "model": self.model,
            "choices": [{ "index": 0, "delta": delta, "finish_reason": finish_reason }],
        })
    }
}

impl Events for Writer {
    fn begin(&mut self) -> String {
        event(&self.chunk(&json!({ "role": "assistant", "content": "" }), None))
    }

    fn thought(&mut self, thought: &str) -> String {
        event(&self.chunk(&json!({ "reasoning_content": thought }), None))
    }

    fn text(&mut self, piece: &str) -> String {
        event(&self.chunk(&json!({ "content": piece }), None))
    }

    fn call(&mut self, call: &Call) -> String {
        self.has_called = true;
        let function = json!({ "name": call.name, "arguments": "" });
        let id = format!("call_{}", self.number);
        let start = json!({ "tool_calls": [{ "index": 0, "id": id, "type": "function", "function": function }] });
        let arguments = json!({ "arguments": call.arguments.to_string() });
        let arguments = json!({ "tool_calls": [{ "index": 0, "function": arguments }] });
        event(&self.chunk(&start, None)) + &event(&self.chunk(&arguments, None))
    }

    fn end(&mut self) -> String {
        let reason = if self.has_called { "tool_calls" } else { "stop" };
        let mut last = self.chunk(&json!({}), Some(reason));
        last["usage"] = json!({
            "prompt_tokens": usage::INPUT, "prompt_tokens_details": { "cached_tokens": usage::CACHED },
            "completion_tokens": usage::OUTPUT, "total_tokens": usage::INPUT + usage::OUTPUT,
        });
        event(&last) + "data: [DONE]\n\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::Prompt;

    #[test]
    fn a_request_is_read() {
        let body = json!({
            "model": "fake-model", "stream": true, "tools": [{ "type": "function", "function": { "name": "bash" } }],
            "messages": [
                { "role": "system", "content": "You are an agent." },
                { "role": "user", "content": "First." },
                { "role": "assistant", "content": "Yes." },
                { "role": "user", "content": [{ "type": "text", "text": "Run." }] },
                { "role": "assistant", "content": "", "tool_calls": [{ "id": "call_1" }] },
                { "role": "tool", "tool_call_id": "call_1", "content": "ran" },
            ],
        });
        let asked = read(&body);
        assert_eq!(asked.prompt(), Prompt { text: "Run.", results: vec!["ran"] });
        assert_eq!((asked.is_side, asked.tools.as_slice()), (false, &["bash".to_owned()][..]));
        assert!(read(&json!({ "messages": [] })).is_side);
    }
}
