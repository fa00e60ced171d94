//! The output of Cursor's agent in a turn.
//!
//! A turn that fails has no result: there is only an exit code and a line on standard error.

use serde_json::Value;

use crate::adapters::dialogue::{Exit, FailureKind, Steps};
use crate::adapters::event::{Event, Scope, Usage};
use crate::adapters::json::parse;
use crate::adapters::json_lines::{ended_without_result, message, refused_by_itself, text};
use crate::adapters::one_way::OutputReader;
use crate::adapters::order::Order;
use crate::adapters::permissions::Permission;

/// What it says when it is not logged in, in lower case.
const NOT_LOGGED_IN: [&str; 5] =
    ["not logged in", "not authenticated", "authentication required", "agent login", "cursor_api_key"];

#[derive(Default)]
pub(super) struct CursorOutput {
    /// Whether it was started read-only, so that its refusals are the operator's.
    only_reads: bool,
    refusal: Option<String>,
}

impl CursorOutput {
    pub(super) fn new(order: &Order) -> Self {
        Self { only_reads: order.permissions.default == Permission::Deny, ..Self::default() }
    }

    fn tool_call(&mut self, event: &Value, steps: &mut Steps) {
        let Some((tool, input, result)) = call(&event["tool_call"]) else { return };
        let id = text(&event["call_id"]).unwrap_or_default();
        match event["subtype"].as_str() {
            Some("started") => steps.event(Event::ToolUse { id, tool, input }),
            Some("completed") => self.tool_result(id, tool, &input, result, steps),
            _ => {}
        }
    }

    fn tool_result(&mut self, id: String, tool: String, input: &Value, result: &Value, steps: &mut Steps) {
        let success = &result["success"];
        // A command that failed is a tool that worked.
        let failed = success["exitCode"].as_i64().is_some_and(|code| code != 0);
        let is_error = success.is_null() || failed;
        let output = output(result);
        let rejected = ["rejected", "permissionDenied"].iter().any(|name| !result[*name].is_null());
        if rejected && !self.only_reads {
            self.refusal.get_or_insert_with(|| refused_by_itself("cursor", &tool, &output));
        }
        let changed = matches!(tool.as_str(), "write" | "edit" | "delete")
            .then(|| text(&success["path"]).or_else(|| text(&input["path"])))
            .flatten();
        steps.event(Event::ToolResult { id, tool, output, is_error });
        if let Some(path) = changed.filter(|_| !is_error) {
            steps.event(Event::FilesChanged { paths: vec![path] });
        }
    }

    fn result(&mut self, event: &Value, steps: &mut Steps) {
        if let Some(usage) = usage(&event["usage"]) {
            steps.event(Event::Usage(usage));
        }
        let said = text(&event["result"]).filter(|said| !said.is_empty());
        if event["is_error"] == true || event["subtype"] != "success" {
            let said = said.unwrap_or_else(|| "cursor says that the turn failed, but not why".to_owned());
            let kind = if is_login(&said) { FailureKind::NotLoggedIn } else { FailureKind::Reported };
            steps.fail(kind, message(&said));
        } else if let Some(refusal) = self.refusal.take() {
            steps.fail(FailureKind::Refused, refusal);
        } else {
            steps.done(said);
        }
    }
}

impl OutputReader for CursorOutput {
    fn line(&mut self, event: &Value, steps: &mut Steps) {
        match (event["type"].as_str(), event["subtype"].as_str()) {
            (Some("system"), Some("init")) => {
                steps.event(Event::Init { session: text(&event["session_id"]), model: text(&event["model"]) });
            }
            // One line is one whole message: partial output is not requested, because it comes several times over.
            (Some("assistant"), _) => {
                let said = said(&event["message"]["content"]);
                if !said.is_empty() {
                    steps.event(Event::Text { text: said });
                    steps.event(Event::TextEnd);
                }
            }
            (Some("thinking"), Some("delta")) => {
                if let Some(text) = text(&event["text"]).filter(|text| !text.is_empty()) {
                    steps.event(Event::Reasoning { text });
                }
            }
            (Some("tool_call"), _) => self.tool_call(event, steps),
            (Some("result"), _) => self.result(event, steps),
            _ => {}
        }
    }

    fn ended(&mut self, exit: &Exit, interrupted: bool, steps: &mut Steps) {
        let described = format!("cursor {}", exit.describe());
        match exit.code {
            Some(code) if code != 0 && is_login(&exit.stderr) => steps.fail(FailureKind::NotLoggedIn, described),
            Some(1) if !interrupted => steps.fail(FailureKind::Reported, described),
            _ => ended_without_result("cursor", exit, interrupted, steps),
        }
    }
}

/// The tool's name, what it is called with and what it answered. The name is that of the member: `readToolCall`, except
/// for tools from elsewhere, which are named inside.
fn call(call: &Value) -> Option<(String, Value, &Value)> {
    let function = &call["function"];
    if let Some(name) = text(&function["name"]) {
        let arguments = &function["arguments"];
        let input = arguments.as_str().and_then(parse);
        let result = if call["result"].is_null() { &function["result"] } else { &call["result"] };
        return Some((name, input.unwrap_or_else(|| arguments.clone()), result));
    }
    let (name, body) = call
        .as_object()?
        .iter()
        .find_map(|(member, body)| member.strip_suffix("ToolCall").map(|name| (name, body)))
        .filter(|(name, _)| !name.is_empty())?;
    Some((name.to_owned(), body["args"].clone(), &body["result"]))
}

/// What a tool answered, as text where it has some.
fn output(result: &Value) -> String {
    let answer = ["success", "error", "rejected", "permissionDenied", "failure"]
        .iter()
        .map(|name| &result[*name])
        .find(|answer| !answer.is_null())
        .unwrap_or(result);
    let words = ["content", "stdout", "output", "message", "errorMessage", "error", "reason"];
    match answer {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        answer => words
            .iter()
            .find_map(|name| text(&answer[*name]).filter(|text| !text.is_empty()))
            .unwrap_or_else(|| answer.to_string()),
    }
}

fn said(content: &Value) -> String {
    let pieces = content.as_array().map(Vec::as_slice).unwrap_or_default();
    pieces.iter().filter(|piece| piece["type"] == "text").filter_map(|piece| piece["text"].as_str()).collect()
}

/// Not documented, but newer versions report it: cached tokens are counted beside the rest.
fn usage(usage: &Value) -> Option<Usage> {
    let number = |name: &str| usage[name].as_u64().unwrap_or(0);
    let cached = number("cacheReadTokens");
    let input = number("inputTokens").saturating_add(cached).saturating_add(number("cacheWriteTokens"));
    usage.is_object().then(|| Usage {
        scope: Scope::Run,
        input_tokens: input,
        cached_tokens: cached,
        output_tokens: number("outputTokens"),
        ..Usage::default()
    })
}

fn is_login(text: &str) -> bool {
    let text = text.to_lowercase();
    NOT_LOGGED_IN.iter().any(|sign| text.contains(sign))
}
