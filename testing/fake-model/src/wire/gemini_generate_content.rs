//! Gemini's generateContent, as Gemini CLI speaks it. Model and streaming are in the path.

use serde_json::{Value, json};

use super::{Events, event, list, text, usage};
use crate::answer::{Reply, Then};
use crate::conversation::{Conversation, Turn};
use crate::tools::Call;

pub(crate) fn read(body: &Value) -> Conversation {
    let declared = list(body, "tools").flat_map(|tool| list(tool, "functionDeclarations"));
    let tools: Vec<String> = declared.map(|tool| text(tool, "name").to_owned()).collect();
    Conversation {
        turns: list(body, "contents").flat_map(turns).collect(),
        is_side: tools.is_empty(),
        tools,
        wants_json: body.pointer("/generationConfig/responseMimeType").is_some_and(|kind| kind == "application/json"),
        ..Conversation::default()
    }
}

/// What tools answered comes in contents of the user.
fn turns(content: &Value) -> Vec<Turn> {
    if text(content, "role") == "model" {
        return vec![Turn::Assistant];
    }
    let mut turns = Vec::new();
    let mut texts = Vec::new();
    for part in list(content, "parts") {
        if let Some(response) = part.pointer("/functionResponse/response") {
            let known = ["output", "error"].into_iter().find_map(|member| response.get(member)?.as_str());
            turns.push(Turn::Tool(known.map_or_else(|| response.to_string(), str::to_owned)));
        } else if let Some(text) = part.get("text").and_then(Value::as_str) {
            texts.push(text.to_owned());
        }
    }
    turns.push(Turn::User(texts));
    turns
}

/// How many tokens any request has.
pub(crate) fn count() -> Value {
    json!({ "totalTokens": usage::INPUT })
}

pub(crate) struct Writer {
    model: String,
    number: usize,
}

impl Writer {
    pub(crate) fn new(model: &str, number: usize) -> Self {
        Self { model: model.to_owned(), number }
    }
}

impl Events for Writer {
    fn begin(&mut self) -> String {
        String::new()
    }

    fn thought(&mut self, thought: &str) -> String {
        event(&response(&self.model, self.number, &[thought_part(thought)], None))
    }

    fn text(&mut self, piece: &str) -> String {
        event(&response(&self.model, self.number, &[json!({ "text": piece })], None))
    }

    fn call(&mut self, call: &Call) -> String {
        event(&response(&self.model, self.number, &[call_part(call, self.number)], None))
    }

    fn end(&mut self) -> String {
        event(&response(&self.model, self.number, &[json!({ "text": "" })], Some("STOP")))
    }
}

pub(crate) fn whole(model: &str, number: usize, reply: &Reply) -> Value {
    let mut parts: Vec<Value> = reply.thought.iter().map(|thought| thought_part(thought)).collect();
    parts.push(match &reply.then {
        Then::Say(pieces) => json!({ "text": pieces.whole() }),
        Then::Call(call) => call_part(call, number),
    });
    response(model, number, &parts, Some("STOP"))
}

fn response(model: &str, number: usize, parts: &[Value], finish_reason: Option<&str>) -> Value {
    let mut candidate = json!({ "content": { "role": "model", "parts": parts }, "index": 0 });
    if let Some(reason) = finish_reason {
        candidate["finishReason"] = json!(reason);
    }
    json!({
        "candidates": [candidate],
        "usageMetadata": {
            "promptTokenCount": usage::INPUT, "candidatesTokenCount": usage::OUTPUT,
            "totalTokenCount": usage::INPUT + usage::OUTPUT, "cachedContentTokenCount": usage::CACHED,
        },
        "modelVersion": model,
        "responseId": format!("r{number}"),
    })
}

fn thought_part(thought: &str) -> Value {
    json!({ "text": thought, "thought": true })
}

fn call_part(call: &Call, number: usize) -> Value {
    json!({ "functionCall": { "id": format!("call_{number}"), "name": call.name, "args": call.arguments } })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::Prompt;

    #[test]
    fn a_request_is_read() {
        let response = |value: Value| json!({ "functionResponse": { "name": "run_shell_command", "response": value } });
        let body = json!({
            "tools": [{ "functionDeclarations": [{ "name": "glob" }, { "name": "run_shell_command" }] }],
            "contents": [
                { "role": "user", "parts": [{ "text": "<session_context>x" }, { "text": "Run." }] },
                { "role": "model", "parts": [{ "functionCall": { "name": "run_shell_command" } }] },
                { "role": "user", "parts": [response(json!({ "output": "ran" }))] },
                { "role": "user", "parts": [response(json!({ "error": "no" })), response(json!({ "other": 1 }))] },
            ],
        });
        let asked = read(&body);
        assert_eq!(asked.prompt(), Prompt { text: "Run.", results: vec!["ran", "no", "{\"other\":1}"] });
        assert_eq!((asked.is_side, asked.tools.len()), (false, 2));
    }
}
