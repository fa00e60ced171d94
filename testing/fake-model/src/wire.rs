//! The wires a model is spoken to in: which request belongs to which, what it asks, and how the answer is written.

pub(crate) mod anthropic_messages;
pub(crate) mod gemini_generate_content;
pub(crate) mod openai_chat_completions;
pub(crate) mod openai_responses;

use serde_json::{Value, json};

use crate::answer::Reply;
use crate::conversation::Conversation;
use crate::tools::Call;

/// One of the ways to speak to a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wire {
    /// `POST /v1/messages`: Claude Code.
    AnthropicMessages,
    /// `POST /v1/responses`: Codex.
    OpenAiResponses,
    /// `POST /v1/chat/completions`: opencode.
    OpenAiChatCompletions,
    /// `POST /v1beta/models/MODEL:streamGenerateContent`: Gemini CLI.
    GeminiGenerateContent,
}

/// What a request is for.
#[derive(Debug, PartialEq)]
pub(crate) struct Route<'a> {
    pub(crate) wire: Wire,
    pub(crate) operation: Operation<'a>,
}

#[derive(Debug, PartialEq)]
pub(crate) enum Operation<'a> {
    /// The body says everything.
    Answer,
    /// The path says what the body does not.
    AnswerOf { model: &'a str, is_streamed: bool },
    /// How many tokens the body has.
    Count,
}

/// What each answer says it has cost.
pub(crate) mod usage {
    pub(crate) const INPUT: u32 = 11;
    /// Of the input.
    pub(crate) const CACHED: u32 = 3;
    pub(crate) const OUTPUT: u32 = 5;
}

/// Writes an answer as events.
pub(crate) trait Events: Send {
    fn begin(&mut self) -> String;
    fn thought(&mut self, thought: &str) -> String;
    fn text(&mut self, piece: &str) -> String;
    fn call(&mut self, call: &Call) -> String;
    fn end(&mut self) -> String;
}

impl Wire {
    /// None for what no wire has.
    pub(crate) fn route<'a>(method: &str, path: &'a str) -> Option<Route<'a>> {
        if method != "POST" {
            return None;
        }
        let (wire, operation) = match path {
            "/v1/messages" => (Self::AnthropicMessages, Operation::Answer),
            "/v1/responses" => (Self::OpenAiResponses, Operation::Answer),
            "/v1/chat/completions" => (Self::OpenAiChatCompletions, Operation::Answer),
            _ => {
                let (model, method) = path.strip_prefix("/v1beta/models/")?.split_once(':')?;
                let operation = match method {
                    "streamGenerateContent" => Operation::AnswerOf { model, is_streamed: true },
                    "generateContent" => Operation::AnswerOf { model, is_streamed: false },
                    "countTokens" => Operation::Count,
                    _ => return None,
                };
                (Self::GeminiGenerateContent, operation)
            }
        };
        Some(Route { wire, operation })
    }

    /// What a request asks. Members that are missing or of another kind count as empty.
    pub(crate) fn read(self, body: &Value) -> Conversation {
        match self {
            Self::AnthropicMessages => anthropic_messages::read(body),
            Self::OpenAiResponses => openai_responses::read(body),
            Self::OpenAiChatCompletions => openai_chat_completions::read(body),
            Self::GeminiGenerateContent => gemini_generate_content::read(body),
        }
    }

    /// The writer of one answer; the number makes its ids.
    pub(crate) fn events(self, model: &str, number: usize) -> Box<dyn Events> {
        match self {
            Self::AnthropicMessages => Box::new(anthropic_messages::Writer::new(model, number)),
            Self::OpenAiResponses => Box::new(openai_responses::Writer::new(number)),
            Self::OpenAiChatCompletions => Box::new(openai_chat_completions::Writer::new(model, number)),
            Self::GeminiGenerateContent => Box::new(gemini_generate_content::Writer::new(model, number)),
        }
    }

    /// An answer in one piece; None on the wires whose agents never ask for that.
    pub(crate) fn whole(self, model: &str, number: usize, reply: &Reply) -> Option<Value> {
        match self {
            Self::AnthropicMessages => Some(anthropic_messages::whole(model, number, reply)),
            Self::GeminiGenerateContent => Some(gemini_generate_content::whole(model, number, reply)),
            Self::OpenAiResponses | Self::OpenAiChatCompletions => None,
        }
    }

    /// The body of a refusal.
    pub(crate) fn refusal(self, status: u16, message: &str) -> Value {
        match self {
            Self::AnthropicMessages => {
                let kind = match status {
                    401 => "authentication_error",
                    429 => "rate_limit_error",
                    529 => "overloaded_error",
                    500.. => "api_error",
                    _ => "invalid_request_error",
                };
                json!({ "type": "error", "error": { "type": kind, "message": message }, "request_id": "req_fake" })
            }
            Self::OpenAiResponses | Self::OpenAiChatCompletions => {
                json!({ "error": { "message": message, "type": "fake_error", "code": format!("fake_{status}") } })
            }
            Self::GeminiGenerateContent => {
                let name = match status {
                    401 => "UNAUTHENTICATED",
                    429 => "RESOURCE_EXHAUSTED",
                    503 => "UNAVAILABLE",
                    500.. => "INTERNAL",
                    _ => "INVALID_ARGUMENT",
                };
                json!({ "error": { "code": status, "message": message, "status": name } })
            }
        }
    }
}

/// An event that has a name.
fn named_event(name: &str, data: &Value) -> String {
    format!("event: {name}\ndata: {data}\n\n")
}

/// An event that has none.
fn event(data: &Value) -> String {
    format!("data: {data}\n\n")
}

/// The elements of a member that is a list.
fn list<'a>(value: &'a Value, member: &str) -> impl DoubleEndedIterator<Item = &'a Value> {
    value.get(member).and_then(Value::as_array).into_iter().flatten()
}

/// A member that is a text.
fn text<'a>(value: &'a Value, member: &str) -> &'a str {
    value.get(member).and_then(Value::as_str).unwrap_or_default()
}

/// The texts of a member that is either one text or a list of parts with texts in them.
fn texts(value: &Value, member: &str) -> Vec<String> {
    match value.get(member) {
        Some(Value::String(text)) => vec![text.clone()],
        Some(Value::Array(parts)) => {
            parts.iter().filter_map(|part| part.get("text")?.as_str().map(str::to_owned)).collect()
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_wire_has_is_not_routed() {
        for (method, path) in [
            ("GET", "/v1/messages"),
            ("POST", "/v1/messages/count_tokens"),
            ("POST", "/v1/models"),
            ("POST", "/v1beta/models/gemini"),
            ("POST", "/v1beta/models/gemini:embedContent"),
        ] {
            assert_eq!(Wire::route(method, path), None, "{method} {path}");
        }
    }

    #[test]
    fn the_path_of_gemini_has_the_model_in_it() {
        let operation = Operation::AnswerOf { model: "gemini-2.5-flash", is_streamed: false };
        let expected = Route { wire: Wire::GeminiGenerateContent, operation };
        assert_eq!(Wire::route("POST", "/v1beta/models/gemini-2.5-flash:generateContent"), Some(expected));
    }

    #[test]
    fn any_body_can_be_read() {
        let odd = json!({ "messages": [1, null, { "role": "user", "content": 3 }], "input": {}, "contents": [[]], "tools": 7 });
        for wire in
            [Wire::AnthropicMessages, Wire::OpenAiResponses, Wire::OpenAiChatCompletions, Wire::GeminiGenerateContent]
        {
            for body in [&odd, &json!(null), &json!([])] {
                assert_eq!(wire.read(body).prompt().text, "");
            }
        }
    }
}
