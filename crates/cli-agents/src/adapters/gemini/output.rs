//! The output of Gemini CLI in a turn.
//!
//! The exit code proves nothing: it is 0 after a failed turn and after a signal, and an HTTP status modulo 256 else.
//! Nor does `success`: it comes after a refused tool, after too many turns and after a loop. When the model's stream
//! breaks, the program retries and repeats the same chunks; they cannot be distinguished from new ones, so they stay.

use std::collections::HashMap;

use serde_json::Value;

use crate::adapters::auth_failures::{AuthFailures, is_auth_failure};
use crate::adapters::dialogue::{Exit, Failure, FailureKind, Steps};
use crate::adapters::event::{Event, Scope, Usage};
use crate::adapters::json_lines::{ended_without_result, message, refused_by_itself, text};
use crate::adapters::messages::Messages;
use crate::adapters::one_way::OutputReader;
use crate::adapters::order::Order;
use crate::adapters::permissions::{Permission, Permissions};

/// A model calls a handful of tools at once; names of more are not remembered.
const MOST_OPEN_TOOLS: usize = 1000;

#[derive(Default)]
pub(super) struct GeminiOutput {
    permissions: Permissions,
    resumed: bool,
    messages: Messages,
    /// Calls without a result: name and the file that is written, by id.
    open: HashMap<String, (String, Option<String>)>,
    /// Something went wrong although it may call the turn a success.
    failure: Option<Failure>,
    auth_failures: AuthFailures,
}

impl GeminiOutput {
    pub(super) fn new(order: &Order) -> Self {
        Self { permissions: order.permissions.clone(), resumed: order.session.resumed().is_some(), ..Self::default() }
    }

    /// A chunk of a message, or a whole one.
    fn message(&mut self, event: &Value, steps: &mut Steps) {
        let Some(text) = text(&event["content"]).filter(|text| !text.is_empty()) else { return };
        if event["role"] != "assistant" {
            return;
        }
        self.auth_failures.reset();
        let is_piece = event["delta"] == true;
        if !is_piece {
            self.messages.end(steps);
        }
        self.messages.push(text, steps);
        if !is_piece {
            self.messages.end(steps);
        }
    }

    fn tool_use(&mut self, event: &Value, steps: &mut Steps) {
        let (Some(id), Some(tool)) = (text(&event["tool_id"]), text(&event["tool_name"])) else { return };
        self.auth_failures.reset();
        self.messages.end(steps);
        if self.open.len() < MOST_OPEN_TOOLS {
            let written = matches!(tool.as_str(), "write_file" | "replace")
                .then(|| text(&event["parameters"]["file_path"]))
                .flatten();
            self.open.insert(id.clone(), (tool.clone(), written));
        }
        steps.event(Event::ToolUse { id, tool, input: event["parameters"].clone() });
    }

    fn tool_result(&mut self, event: &Value, steps: &mut Steps) {
        let Some(id) = text(&event["tool_id"]) else { return };
        // A result without a call: its id begins with the tool's name.
        let (tool, written) = self.open.remove(&id).unwrap_or_else(|| {
            let tool = id.rsplit_once("__").map_or(id.as_str(), |(tool, _)| tool);
            (tool.to_owned(), None)
        });
        let is_error = event["status"] != "success";
        let output = text(&event["output"]).or_else(|| text(&event["error"]["message"])).unwrap_or_default();
        if is_error && self.is_refusal(&tool, &event["error"]) {
            self.failure.get_or_insert_with(|| Failure {
                kind: FailureKind::Refused,
                message: refused_by_itself("gemini", &tool, &output),
            });
        }
        steps.event(Event::ToolResult { id, tool, output, is_error });
        if let Some(path) = written.filter(|_| !is_error) {
            steps.event(Event::FilesChanged { paths: vec![path] });
        }
    }

    /// Whether the program refused a tool that is allowed: by a policy of the user's, or because it would need a human
    /// for this use of it. What is denied here was refused by the operator, and a tool that is not there at all was
    /// either denied or made up by the model.
    fn is_refusal(&self, tool: &str, error: &Value) -> bool {
        let needs_confirmation =
            error["message"].as_str().is_some_and(|message| message.contains("requires user confirmation"));
        self.permissions.of(tool) != Permission::Deny && (error["type"] == "policy_violation" || needs_confirmation)
    }

    /// An error during the turn. It goes on after some; after others it stops and reports success.
    fn error(&mut self, event: &Value, steps: &mut Steps) {
        let Some(text) = text(&event["message"]) else { return };
        let is_loop = text.starts_with("Loop detected");
        if event["severity"] == "error" || is_loop {
            let kind = match is_loop || text.starts_with("Maximum session turns") {
                true => FailureKind::Limit,
                false if is_auth_failure(&text) => FailureKind::NotLoggedIn,
                false => FailureKind::Reported,
            };
            if kind == FailureKind::NotLoggedIn && self.auth_failures.add() {
                self.messages.end(steps);
                return steps.fail(kind, message(&text));
            }
            self.failure = Some(Failure { kind, message: message(&text) });
        }
        steps.event(Event::Notice { text: message(&text) });
    }

    fn result(&mut self, event: &Value, steps: &mut Steps) {
        self.messages.end(steps);
        if let Some(usage) = usage(&event["stats"]) {
            steps.event(Event::Usage(usage));
        }
        if event["status"] != "success" {
            let failure = failure_of(&event["error"]).or_else(|| self.failure.take());
            let Failure { kind, message } = failure.unwrap_or_else(|| Failure {
                kind: FailureKind::Reported,
                message: "gemini says that the turn failed, but not why".to_owned(),
            });
            steps.fail(kind, message);
        } else if let Some(Failure { kind, message }) = self.failure.take() {
            steps.fail(kind, message);
        } else {
            steps.done(self.messages.last());
        }
    }
}

impl OutputReader for GeminiOutput {
    fn line(&mut self, event: &Value, steps: &mut Steps) {
        match event["type"].as_str() {
            Some("init") => {
                steps.event(Event::Init { session: text(&event["session_id"]), model: text(&event["model"]) });
            }
            Some("message") => self.message(event, steps),
            Some("tool_use") => self.tool_use(event, steps),
            Some("tool_result") => self.tool_result(event, steps),
            Some("error") => self.error(event, steps),
            Some("result") => self.result(event, steps),
            _ => {}
        }
    }

    fn ended(&mut self, exit: &Exit, interrupted: bool, steps: &mut Steps) {
        self.messages.end(steps);
        let no_session = exit.stderr.lines().find(|line| line.contains("Error resuming session"));
        match (exit.code, no_session) {
            (Some(41), _) => steps.fail(FailureKind::NotLoggedIn, format!("gemini {}", exit.describe())),
            (Some(42), Some(line)) if self.resumed => steps.fail(FailureKind::UnknownSession, message(line)),
            (Some(53), _) => steps.fail(FailureKind::Limit, format!("gemini {}", exit.describe())),
            (Some(55), _) => {
                let text = "gemini does not work in a folder that its user has not trusted: run `gemini` there once and trust it";
                steps.fail(FailureKind::Reported, text);
            }
            // Wrong input, sandbox, settings, a tool that cannot go on.
            (Some(42 | 44 | 52 | 54), _) => {
                steps.fail(FailureKind::Reported, format!("gemini {}", exit.describe()));
            }
            _ => ended_without_result("gemini", exit, interrupted, steps),
        }
    }
}

fn failure_of(error: &Value) -> Option<Failure> {
    let text = text(&error["message"])?;
    let kind = match error["type"].as_str() {
        Some("FatalAuthenticationError" | "UnauthorizedError") => FailureKind::NotLoggedIn,
        Some("FatalTurnLimitedError") => FailureKind::Limit,
        Some("FatalCancellationError" | "CanceledError") => FailureKind::Interrupted,
        _ if is_auth_failure(&text) => FailureKind::NotLoggedIn,
        _ => FailureKind::Reported,
    };
    Some(Failure { kind, message: message(&text) })
}

/// Tokens of the total that are neither input nor output are reasoning.
fn usage(stats: &Value) -> Option<Usage> {
    let number = |name: &str| stats[name].as_u64().unwrap_or(0);
    let (input, output) = (number("input_tokens"), number("output_tokens"));
    let reasoning = number("total_tokens").saturating_sub(input.saturating_add(output));
    stats.is_object().then(|| Usage {
        scope: Scope::Run,
        input_tokens: input,
        cached_tokens: number("cached"),
        output_tokens: output.saturating_add(reasoning),
        reasoning_tokens: reasoning,
        cost_usd: None,
    })
}
