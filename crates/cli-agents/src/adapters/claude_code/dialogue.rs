//! One turn: lines in, steps out.

use serde_json::{Value, json};

use super::approvals::Approvals;
use super::background::Background;
use super::deny_hook::DenyHook;
use super::message_stream::MessageStream;
use super::outcome::{self, ResultContext};
use super::tools::Calls;
use super::usage;
use crate::adapters::auth_failures::AuthFailures;
use crate::adapters::dialogue::{Dialogue, Ending, Exit, Steps};
use crate::adapters::event::{Decision, Event, Usage};
use crate::adapters::json::{list, number, parse, text};
use crate::adapters::order::Order;
use crate::adapters::permissions::Permissions;
use crate::adapters::truncate::cut;

const LONGEST_NOTICE: usize = 500;

#[derive(Debug, Default)]
pub(super) struct ClaudeDialogue {
    /// Until it is written.
    prompt: Option<String>,
    permissions: Permissions,
    /// If something is denied. The prompt is then written when the program has accepted the hook.
    deny_hook: Option<DenyHook>,
    messages: MessageStream,
    calls: Calls,
    approvals: Approvals,
    background: Background,
    usage: Usage,
    /// What kind of error the program has called the last one.
    error: String,
    auth_failures: AuthFailures,
    /// How the turn ends if no other result follows.
    result: Option<Ending>,
    interrupted: bool,
    finished: bool,
}

impl ClaudeDialogue {
    pub(super) fn new(order: &Order) -> Self {
        // A leading slash may be a command to the program itself, like `/model`. A caller's message is for the model:
        // with a space before it, it is plain text.
        let prompt = if order.prompt.starts_with('/') { format!(" {}", order.prompt) } else { order.prompt.clone() };
        Self {
            prompt: Some(prompt),
            deny_hook: DenyHook::new(&order.permissions),
            permissions: order.permissions.clone(),
            approvals: Approvals::new(&order.cwd),
            ..Self::default()
        }
    }

    fn write_prompt(&mut self, steps: &mut Steps) {
        let Some(prompt) = self.prompt.take() else {
            return;
        };
        let content = json!([{"type": "text", "text": prompt}]);
        steps.write(json!({"type": "user", "message": {"role": "user", "content": content}}).to_string());
    }

    fn reply(&mut self, line: &Value, steps: &mut Steps) {
        match self.deny_hook.as_ref().and_then(|hook| hook.reply(line)) {
            Some(Ok(())) => self.write_prompt(steps),
            Some(Err(why)) => self.finish(Ending::Failed(outcome::unruled(&why)), steps),
            None => {}
        }
    }

    fn ask(&mut self, line: &Value, steps: &mut Steps) {
        match self.deny_hook.as_ref().and_then(|hook| hook.answer(line)) {
            Some(answered) => {
                if let Some((call, tool)) = answered.refused {
                    self.approvals.refused(call, tool);
                }
                steps.write(answered.line);
            }
            None => self.approvals.ask(line, steps),
        }
    }

    fn system(&mut self, line: &Value, steps: &mut Steps) {
        let optional = |member| Some(text(line, member)).filter(|text| !text.is_empty()).map(str::to_owned);
        match text(line, "subtype") {
            "init" => steps.event(Event::Init { session: optional("session_id"), model: optional("model") }),
            "api_retry" => self.retry(line, steps),
            "permission_denied" => notice(&format!("{}: {}", text(line, "tool_name"), text(line, "message")), steps),
            "compact_boundary" => notice("the conversation was shortened to fit the model", steps),
            // Those of commands in the foreground have no file, and their result is an event anyway. A subagent's may
            // continue with its whole output.
            "task_notification" if !text(line, "output_file").is_empty() => {
                notice(text(line, "summary").lines().next().unwrap_or_default(), steps);
            }
            _ => {}
        }
        self.background.update(line, self.result.is_some());
        self.settle(steps);
    }

    /// A request to the model's service failed and is retried.
    fn retry(&mut self, line: &Value, steps: &mut Steps) {
        let error = text(line, "error");
        let mut why = error.replace('_', " ");
        let status = line.get("error_status").and_then(Value::as_u64);
        if let Some(status) = status {
            why = format!("{why} ({status})");
        }
        let is_rejected = error == "authentication_failed" || status == Some(401);
        let (attempt, most, delay) =
            (number(line, "attempt"), number(line, "max_retries"), number(line, "retry_delay_ms"));
        // Subagents that work side by side may each meet an expired token at their first attempt.
        if is_rejected && self.auth_failures.add() && attempt != 1 {
            return self.finish(Ending::Failed(outcome::rejected(&why)), steps);
        }
        notice(&format!("the model did not answer: {why}; retry {attempt} of {most} in {delay} ms"), steps);
    }

    fn stream(&mut self, line: &Value, steps: &mut Steps) {
        let Some(event) = line.get("event").filter(|_| !by_another_agent(line)) else {
            return;
        };
        match text(event, "type") {
            "message_start" => {
                self.auth_failures.reset();
                self.messages.begin(event.get("message").map_or("", |message| text(message, "id")), steps);
            }
            "content_block_delta" => {
                let delta = &event["delta"];
                match text(delta, "type") {
                    "text_delta" => self.messages.text_delta(text(delta, "text"), steps),
                    "thinking_delta" => self.messages.reasoning_delta(text(delta, "thinking"), steps),
                    _ => {}
                }
            }
            "message_stop" => match line.get("abandoned_blocks") {
                Some(abandoned) if number(abandoned, "from_block_index") == 0 => self.messages.abandon(),
                _ => self.messages.end(steps),
            },
            _ => {}
        }
    }

    fn assistant(&mut self, line: &Value, steps: &mut Steps) {
        let message = &line["message"];
        let id = text(message, "id");
        let is_error = line.get("is_api_error_message").and_then(Value::as_bool).unwrap_or_default();
        if is_error {
            text(line, "error").clone_into(&mut self.error);
        }
        // A subagent's messages are for this agent, which sums them up. Its tool calls are passed on.
        let (other, whole) = (by_another_agent(line), message.get("content").and_then(Value::as_str));
        let whole = whole.map(|text| json!({"type": "text", "text": text}));
        for block in whole.iter().chain(list(message, "content")) {
            match text(block, "type") {
                // Made up by the program, and no answer.
                "text" if is_error => notice(text(block, "text"), steps),
                "text" if !other => self.messages.whole_text(id, text(block, "text"), steps),
                "thinking" if !other => self.messages.whole_reasoning(id, text(block, "thinking"), steps),
                "tool_use" => {
                    if !other {
                        self.messages.end(steps);
                    }
                    self.calls.call(block, steps);
                }
                _ => {}
            }
        }
    }

    fn user(&mut self, line: &Value, steps: &mut Steps) {
        if !by_another_agent(line) {
            self.messages.end(steps);
        }
        let content = line.get("message").map_or(&[][..], |message| list(message, "content"));
        for block in content.iter().filter(|block| text(block, "type") == "tool_result") {
            self.calls.answer(block, steps);
        }
    }

    fn result(&mut self, line: &Value, steps: &mut Steps) {
        self.messages.end(steps);
        usage::add(&mut self.usage, line);
        let Usage { input_tokens, output_tokens, cost_usd, .. } = self.usage;
        if input_tokens > 0 || output_tokens > 0 || cost_usd.is_some_and(|cost| cost > 0.0) {
            steps.event(Event::Usage(self.usage));
        }
        let context = ResultContext {
            approvals: &self.approvals,
            permissions: &self.permissions,
            error: &self.error,
            interrupted: self.interrupted,
        };
        let ending = outcome::of_result(line, &context);
        self.background.result_received();
        if matches!(ending, Ending::Failed(_)) {
            self.finish(ending, steps);
        } else {
            self.result = Some(ending);
            self.settle(steps);
        }
    }

    /// Ends the turn if it has a result and no other can follow.
    fn settle(&mut self, steps: &mut Steps) {
        if self.background.is_over()
            && let Some(ending) = self.result.take()
        {
            self.finish(ending, steps);
        }
    }

    fn finish(&mut self, ending: Ending, steps: &mut Steps) {
        self.finished = true;
        steps.finish(ending);
    }
}

impl Dialogue for ClaudeDialogue {
    fn begin(&mut self, steps: &mut Steps) {
        match &self.deny_hook {
            Some(hook) => steps.write(hook.request()),
            None => self.write_prompt(steps),
        }
    }

    fn line(&mut self, line: &str, steps: &mut Steps) {
        if self.finished {
            return;
        }
        // The member `type` may be anywhere in it.
        let Some(line) = parse(line) else {
            return;
        };
        match text(&line, "type") {
            "system" => self.system(&line, steps),
            "stream_event" => self.stream(&line, steps),
            "assistant" => self.assistant(&line, steps),
            "user" => self.user(&line, steps),
            "control_request" => self.ask(&line, steps),
            "control_response" => self.reply(&line, steps),
            "control_cancel_request" => self.approvals.withdraw(&line, steps),
            "result" => self.result(&line, steps),
            _ => {}
        }
    }

    fn decide(&mut self, request: &str, decision: &Decision, steps: &mut Steps) {
        if !self.finished {
            self.approvals.decide(request, decision, steps);
        }
    }

    fn interrupt(&mut self, steps: &mut Steps) {
        if self.finished || self.interrupted {
            return;
        }
        self.interrupted = true;
        if self.result.take().is_some() {
            // It only waits for background tasks, and would not answer.
            self.finish(Ending::Failed(outcome::stopped()), steps);
            return;
        }
        let request = json!({"subtype": "interrupt"});
        steps.write(json!({"type": "control_request", "request_id": "interrupt", "request": request}).to_string());
    }

    fn ended(&mut self, exit: &Exit, steps: &mut Steps) {
        if self.finished {
            return;
        }
        self.messages.end(steps);
        let ending = self.result.take();
        let ending = ending.unwrap_or_else(|| Ending::Failed(outcome::of_exit(exit, self.interrupted)));
        self.finish(ending, steps);
    }
}

/// Whether a line is about an agent that this one has started.
fn by_another_agent(line: &Value) -> bool {
    line.get("parent_tool_use_id").is_some_and(|parent| !parent.is_null())
}

fn notice(text: &str, steps: &mut Steps) {
    if !text.is_empty() {
        steps.event(Event::Notice { text: cut(text, LONGEST_NOTICE).into_owned() });
    }
}
