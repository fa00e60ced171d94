//! The output of opencode in a turn.
//!
//! Nothing says that it begins or how it ended: the conversation is named in every event, and the end is a step that
//! finished for a good reason, and then the end of the program. Its exit code is 0 after a refused tool, and 1 after a
//! trouble that it got over.

use serde_json::Value;

use super::permission::is_denied;
use crate::adapters::auth_failures::{AuthFailures, is_auth_failure};
use crate::adapters::dialogue::{Exit, Failure, FailureKind, Steps};
use crate::adapters::event::{Event, Scope, Usage};
use crate::adapters::json_lines::{ended_without_result, message, refused_by_itself, text};
use crate::adapters::one_way::OutputReader;
use crate::adapters::order::Order;
use crate::adapters::permissions::{Permission, Permissions};

/// When the model's stream breaks without a reason, opencode calls the model again, without end. So many broken steps
/// in a row are enough.
const MOST_BROKEN_STEPS: u32 = 3;

#[derive(Default)]
pub(super) struct OpencodeOutput {
    permissions: Permissions,
    resumed: bool,
    /// Whether the session's id was reported.
    named: bool,
    said: Option<String>,
    /// Why the last step finished, if none has begun since.
    reason: Option<String>,
    broken_steps: u32,
    usage: Usage,
    refusal: Option<String>,
    /// An error after which no step has begun.
    error: Option<Failure>,
    auth_failures: AuthFailures,
}

impl OpencodeOutput {
    pub(super) fn new(order: &Order) -> Self {
        Self { permissions: order.permissions.clone(), resumed: order.session.resumed().is_some(), ..Self::default() }
    }

    fn name_session(&mut self, event: &Value, steps: &mut Steps) {
        if self.named {
            return;
        }
        if let Some(session) = text(&event["sessionID"]) {
            self.named = true;
            steps.event(Event::Init { session: Some(session), model: None });
        }
    }

    /// It goes on after some errors: a session that grew too long is compacted.
    fn step_start(&mut self, steps: &mut Steps) {
        self.reason = None;
        if let Some(error) = self.error.take() {
            steps.event(Event::Notice { text: error.message });
        }
    }

    /// A tool call with its result: it is reported only when it has ended.
    fn tool_use(&mut self, part: &Value, steps: &mut Steps) {
        let Some(mut tool) = text(&part["tool"]) else { return };
        let state = &part["state"];
        let id = text(&part["callID"]).or_else(|| text(&part["id"])).unwrap_or_default();
        self.broken_steps = 0;
        // A call that could not be made is reported as a call of this tool.
        let is_invalid = tool == "invalid";
        if is_invalid && let Some(meant) = text(&state["input"]["tool"]) {
            tool = meant;
        }
        // A command that failed is a tool that worked.
        let failed = state["metadata"]["exit"].as_i64().is_some_and(|code| code != 0);
        let is_error = state["status"] != "completed" || failed || is_invalid;
        let output = text(&state["error"]).or_else(|| text(&state["output"])).unwrap_or_default();
        if is_error && self.is_refusal(&tool, &output) {
            // After this come all its rules, with paths of the operator's.
            let why = output.split(" Here are some of the relevant rules").next().unwrap_or_default();
            self.refusal.get_or_insert_with(|| refused_by_itself("opencode", &tool, why));
        }
        steps.event(Event::ToolUse { id: id.clone(), tool: tool.clone(), input: state["input"].clone() });
        let changed = text(&state["input"]["filePath"]).filter(|_| matches!(tool.as_str(), "write" | "edit"));
        steps.event(Event::ToolResult { id, tool, output, is_error });
        if let Some(path) = changed.filter(|_| !is_error) {
            steps.event(Event::FilesChanged { paths: vec![path] });
        }
    }

    /// Whether the program refused a tool that is allowed here: it wanted to ask, or another rule of its configuration
    /// prevents it. What is denied was refused by the operator; with that as the default, every rule that prevents is.
    fn is_refusal(&self, tool: &str, output: &str) -> bool {
        if is_denied(&self.permissions, tool) {
            return false;
        }
        let by_rule = output.starts_with("The user has specified a rule which prevents");
        let denied_by_default = by_rule && self.permissions.default == Permission::Deny;
        (by_rule || output.starts_with("The user rejected permission")) && !denied_by_default
    }

    fn step_finish(&mut self, part: &Value, steps: &mut Steps) {
        self.reason = text(&part["reason"]);
        self.add_usage(part, steps);
        self.auth_failures.reset();
        if self.reason.as_deref() != Some("unknown") {
            self.broken_steps = 0;
            return;
        }
        self.broken_steps += 1;
        if self.broken_steps == MOST_BROKEN_STEPS {
            steps.fail(
                FailureKind::Reported,
                format!(
                    "the model's answer broke off {MOST_BROKEN_STEPS} times in a row without a reason, and opencode \
                     would ask again for ever: look at the model's server"
                ),
            );
        }
    }

    /// Each step reports its own usage; the event carries the sum.
    fn add_usage(&mut self, part: &Value, steps: &mut Steps) {
        let tokens = &part["tokens"];
        if !tokens.is_object() {
            return;
        }
        let number = |value: &Value| value.as_u64().unwrap_or(0);
        let (read, written) = (number(&tokens["cache"]["read"]), number(&tokens["cache"]["write"]));
        let reasoning = number(&tokens["reasoning"]);
        self.usage.add(&Usage {
            scope: Scope::Run,
            input_tokens: number(&tokens["input"]).saturating_add(read).saturating_add(written),
            cached_tokens: read,
            output_tokens: number(&tokens["output"]).saturating_add(reasoning),
            reasoning_tokens: reasoning,
            cost_usd: part["cost"].as_f64(),
        });
        steps.event(Event::Usage(self.usage));
    }

    /// An error that it may recover from.
    fn error(&mut self, failure: Failure, steps: &mut Steps) {
        if failure.kind == FailureKind::NotLoggedIn && self.auth_failures.add() {
            return steps.fail(failure.kind, failure.message);
        }
        self.error.get_or_insert(failure);
    }

    /// Finishes a turn by the reason of its last step; returns false if the reason is unknown.
    fn ending(&mut self, exit: &Exit, interrupted: bool, steps: &mut Steps) -> bool {
        match self.reason.as_deref() {
            // Whatever the exit code: it stays 1 after an error that it recovered from.
            Some("stop") => steps.done(self.said.take()),
            Some("length") => {
                steps.fail(FailureKind::Limit, "the model's answer reached its greatest length");
            }
            Some("content-filter") => {
                steps.fail(FailureKind::Reported, "the model's provider withheld the answer (content filter)");
            }
            // It stops after a call only if that was refused.
            Some("tool-calls") if exit.code == Some(0) && !interrupted => {
                let text = "opencode stopped after it had refused a tool without asking: look at opencode's own settings \
                            and at permissions of this agent";
                steps.fail(FailureKind::Refused, text);
            }
            _ => return false,
        }
        true
    }
}

impl OutputReader for OpencodeOutput {
    fn line(&mut self, event: &Value, steps: &mut Steps) {
        self.name_session(event, steps);
        let part = &event["part"];
        match event["type"].as_str() {
            Some("step_start") => self.step_start(steps),
            Some("text") => {
                if let Some(text) = text(&part["text"]).filter(|text| !text.is_empty()) {
                    self.said = Some(text.clone());
                    steps.event(Event::Text { text });
                    steps.event(Event::TextEnd);
                }
            }
            Some("reasoning") => {
                if let Some(text) = text(&part["text"]).filter(|text| !text.is_empty()) {
                    steps.event(Event::Reasoning { text });
                }
            }
            Some("tool_use") => self.tool_use(part, steps),
            Some("step_finish") => self.step_finish(part, steps),
            Some("error") => self.error(failure_of(&event["error"]), steps),
            _ => {}
        }
    }

    fn ended(&mut self, exit: &Exit, interrupted: bool, steps: &mut Steps) {
        let no_session = self.resumed && exit.stderr.contains("Session not found");
        if let Some(Failure { kind, message }) = self.error.take() {
            steps.fail(kind, message);
        } else if no_session {
            steps.fail(FailureKind::UnknownSession, "opencode does not know this conversation: Session not found");
        } else if let Some(refusal) = self.refusal.take() {
            steps.fail(FailureKind::Refused, refusal);
        } else if !self.named && super::lost_a_race(exit) {
            steps.fail(FailureKind::NotReady, format!("opencode {}", exit.describe()));
        } else if !self.ending(exit, interrupted, steps) {
            ended_without_result("opencode", exit, interrupted, steps);
        }
    }
}

/// The failure of an error event. It also holds responses of the model's server with their headers: not for callers.
fn failure_of(error: &Value) -> Failure {
    let name = error["name"].as_str().unwrap_or("error");
    let data = &error["data"];
    let said = data["message"].as_str().or_else(|| error["message"].as_str()).unwrap_or(name);
    let kind = match (name, data["statusCode"].as_u64()) {
        ("ProviderAuthError", _) | (_, Some(401)) => FailureKind::NotLoggedIn,
        ("MessageOutputLengthError" | "ContextOverflowError", _) => FailureKind::Limit,
        ("MessageAbortedError", _) => FailureKind::Interrupted,
        _ if is_auth_failure(said) => FailureKind::NotLoggedIn,
        _ => FailureKind::Reported,
    };
    Failure { kind, message: message(said) }
}
