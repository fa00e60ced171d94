//! The events of this crate as a program writes them, one JSON object on each line, in their own spelling or with
//! `camelCase` members.

use serde_json::{Map, Value, json};

use crate::adapters::dialogue::FailureKind;
use crate::adapters::event::{Approval, Choice, ChoiceKind, Event, Scope, Usage};
use crate::adapters::generic::json_line;
use crate::adapters::generic::open_calls::OpenCalls;
use crate::adapters::generic::text_lines::PROMPT_TOOL;

/// A parsed line.
pub(crate) enum ParsedLine {
    /// An event that needs no state of the run.
    Event(Event),
    /// A part of a message.
    Text(String),
    /// The message is complete.
    TextEnd,
    /// An approval request, with its id as the program spelled it.
    Approval(Approval, Value),
    /// A request is withdrawn.
    Withdrawn(String),
    /// The turn went well.
    Done {
        /// What it cost.
        usage: Option<Usage>,
        /// The whole answer.
        answer: Option<String>,
    },
    /// The turn failed.
    Error(FailureKind, String),
}

/// Parses a line of this protocol. `number` identifies a request without an id.
pub(crate) fn read(members: &Map<String, Value>, calls: &mut OpenCalls, number: u64) -> Option<ParsedLine> {
    let line = Members(members);
    let event = match members.get("kind")?.as_str()? {
        "init" => {
            Event::Init { session: line.text(&["session", "sessionId", "session_id"]), model: line.text(&["model"]) }
        }
        "text" => return line.text(&["text"]).map(ParsedLine::Text),
        "text_end" => return Some(ParsedLine::TextEnd),
        "reasoning" | "thinking" => Event::Reasoning { text: line.text(&["text"])? },
        "tool_use" => {
            let call = calls.open(line.text(&["id"]), line.text(&["tool"]));
            Event::ToolUse { id: call.id, tool: call.tool, input: line.input() }
        }
        "tool_result" => {
            let call = calls.close(line.text(&["id"]), line.text(&["tool"]));
            Event::ToolResult {
                id: call.id,
                tool: call.tool,
                output: line.text(&["output"]).unwrap_or_default(),
                is_error: line.value(&["is_error", "isError"]) == Some(&Value::Bool(true)),
            }
        }
        "approval_required" => return Some(line.question(number)),
        "approval_withdrawn" => return line.text(&["request"]).map(ParsedLine::Withdrawn),
        "usage" => Event::Usage(line.usage()),
        "files_changed" => Event::FilesChanged { paths: line.paths()? },
        "notice" => Event::Notice { text: line.text(&["text", "message"])? },
        "done" => {
            let usage = line.value(&["usage", "stats"]).and_then(Value::as_object).map(|usage| Members(usage).usage());
            return Some(ParsedLine::Done { usage, answer: line.text(&["answer", "summary"]) });
        }
        "error" => {
            let message = line.text(&["message", "text"]);
            let message = message.unwrap_or_else(|| "the program reported an error and did not say which".to_owned());
            return Some(ParsedLine::Error(line.failure(), message));
        }
        _ => return None,
    };
    Some(ParsedLine::Event(event))
}

struct Members<'a>(&'a Map<String, Value>);

impl Members<'_> {
    /// The first of these members that is there.
    fn value(&self, names: &[&str]) -> Option<&Value> {
        names.iter().find_map(|name| self.0.get(*name)).filter(|value| !value.is_null())
    }

    fn text(&self, names: &[&str]) -> Option<String> {
        self.value(names).and_then(json_line::text)
    }

    fn count(&self, names: &[&str]) -> u64 {
        self.value(names).and_then(json_line::count).unwrap_or_default()
    }

    fn input(&self) -> Value {
        self.value(&["input"]).cloned().unwrap_or_else(|| json!({}))
    }

    fn paths(&self) -> Option<Vec<String>> {
        let paths = self.value(&["paths"])?.as_array()?;
        Some(paths.iter().filter_map(Value::as_str).map(str::to_owned).collect())
    }

    fn usage(&self) -> Usage {
        Usage {
            scope: if self.value(&["scope"]) == Some(&json!("session")) { Scope::Session } else { Scope::Run },
            input_tokens: self.count(&["input_tokens", "inputTokens"]),
            cached_tokens: self.count(&["cached_tokens", "cachedTokens"]),
            output_tokens: self.count(&["output_tokens", "outputTokens"]),
            reasoning_tokens: self.count(&["reasoning_tokens", "reasoningTokens"]),
            cost_usd: self.value(&["cost_usd", "costUsd"]).and_then(Value::as_f64),
        }
    }

    fn question(&self, number: u64) -> ParsedLine {
        let tool = self.text(&["tool"]).unwrap_or_else(|| PROMPT_TOOL.to_owned());
        let spelled = self.value(&["request"]).cloned().unwrap_or_else(|| json!(number.to_string()));
        let approval = Approval {
            request: json_line::text(&spelled).unwrap_or_default(),
            prompt: self.text(&["prompt"]).unwrap_or_else(|| format!("Use {tool}")),
            tool,
            input: self.input(),
            choices: self.choices(),
            no_plain_yes: false,
            takes_reason: true,
        };
        ParsedLine::Approval(approval, spelled)
    }

    fn choices(&self) -> Vec<Choice> {
        let offered = self.value(&["choices"]).and_then(Value::as_array);
        let offered = offered.into_iter().flatten().filter_map(Value::as_object).map(Members);
        let choice = |choice: Members<'_>| {
            let id = choice.text(&["id"])?;
            let label = choice.text(&["label"]).unwrap_or_else(|| id.clone());
            let kind = match choice.text(&["kind"]).as_deref() {
                Some("allow_once") => ChoiceKind::AllowOnce,
                Some("allow_always") => ChoiceKind::AllowAlways,
                Some("reject_once") => ChoiceKind::RejectOnce,
                Some("reject_always") => ChoiceKind::RejectAlways,
                _ => ChoiceKind::Other,
            };
            Some(Choice { id, label, kind })
        };
        offered.filter_map(choice).collect()
    }

    fn failure(&self) -> FailureKind {
        match self.text(&["failure"]).as_deref() {
            Some("refused") => FailureKind::Refused,
            Some("not_logged_in") => FailureKind::NotLoggedIn,
            Some("unknown_session") => FailureKind::UnknownSession,
            Some("limit") => FailureKind::Limit,
            Some("interrupted") => FailureKind::Interrupted,
            _ => FailureKind::Reported,
        }
    }
}
