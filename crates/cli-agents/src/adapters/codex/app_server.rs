//! `codex app-server`: JSON-RPC, one message per line, without its `jsonrpc` member.
//!
//! After `initialize`, a thread and a turn are started; notifications follow until the turn has ended. Subagents run in
//! threads of their own: their approval requests and calls are passed on, their messages and turn results are not.

mod approval_request;
mod thread_request;
mod unapproved_call;

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::failure;
use super::items::{Call, Items, either_text, usage};
use crate::adapters::auth_failures::AuthFailures;
use crate::adapters::dialogue::{Dialogue, Exit, Failure, FailureKind, Steps};
use crate::adapters::event::{Decision, Event};
use crate::adapters::json::{parse, text};
use crate::adapters::order::Order;
use crate::adapters::permissions::Permissions;
use approval_request::PendingApproval;
use thread_request::ThreadRequest;
use unapproved_call::UnapprovedCall;

const INITIALIZE: u64 = 1;
const THREAD: u64 = 2;
const TURN: u64 = 3;
const INTERRUPT: u64 = 4;
const CONFIG: u64 = 5;

/// The most approval requests open at once. More are refused.
const MOST_PENDING_APPROVALS: usize = 100;

/// Notifications that may be large and are not needed: other ones carry the same, or the whole later.
const UNWANTED: [&str; 3] = ["turn/diff/updated", "item/commandExecution/outputDelta", "item/fileChange/outputDelta"];

#[derive(Default)]
pub(super) struct AppServer {
    prompt: String,
    effort: Option<String>,
    permissions: Permissions,
    /// Whether it runs in a read-only sandbox, without approval requests.
    read_only: bool,
    thread_request: ThreadRequest,
    stage: Stage,
    thread: String,
    turn: Option<String>,
    items: Items,
    auth_failures: AuthFailures,
    /// Approval requests without an answer, by the JSON text of their id.
    pending_approvals: BTreeMap<String, PendingApproval>,
    interrupted: bool,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    Initializing,
    ReadingConfig,
    OpeningThread,
    Running,
    Finished,
}

impl AppServer {
    pub(super) fn new(order: &Order) -> Self {
        Self {
            prompt: order.prompt.clone(),
            effort: order.effort.clone(),
            permissions: order.permissions.clone(),
            read_only: super::read_only(&order.permissions),
            thread_request: ThreadRequest::new(order),
            ..Self::default()
        }
    }

    fn response(&mut self, id: u64, message: &Value, steps: &mut Steps) {
        let result = &message["result"];
        match (self.stage, id, message.get("error")) {
            (Stage::OpeningThread, THREAD, Some(error)) => {
                self.fail(failure::not_opened(text(error, "message")), steps);
            }
            (Stage::Initializing, INITIALIZE, Some(error))
            | (Stage::ReadingConfig, CONFIG, Some(error))
            | (Stage::Running, TURN, Some(error)) => {
                self.fail(failure::reported(text(error, "message"), &Value::Null), steps);
            }
            (Stage::Initializing, INITIALIZE, None) => self.read_config(steps),
            (Stage::ReadingConfig, CONFIG, None) => self.open_thread(&result["config"], steps),
            (Stage::OpeningThread, THREAD, None) => self.start_turn(result, steps),
            (Stage::Running, TURN, None) => {
                let turn = &result["turn"];
                self.set_turn(text(turn, "id"), steps);
            }
            _ => {}
        }
    }

    fn read_config(&mut self, steps: &mut Steps) {
        let params = self.thread_request.config_params();
        steps.write(json!({ "method": "initialized" }).to_string());
        steps.write(json!({ "id": CONFIG, "method": "config/read", "params": params }).to_string());
        self.stage = Stage::ReadingConfig;
    }

    fn open_thread(&mut self, config: &Value, steps: &mut Steps) {
        let (method, params) = self.thread_request.call(config);
        steps.write(json!({ "id": THREAD, "method": method, "params": params }).to_string());
        self.stage = Stage::OpeningThread;
    }

    fn start_turn(&mut self, opened: &Value, steps: &mut Steps) {
        let thread = &opened["thread"];
        self.thread = text(thread, "id").to_owned();
        let model = Some(text(opened, "model")).filter(|model| !model.is_empty()).map(str::to_owned);
        steps.event(Event::Init { session: Some(self.thread.clone()), model });
        let prompt = std::mem::take(&mut self.prompt);
        let mut params = json!({ "threadId": self.thread, "input": [{ "type": "text", "text": prompt }] });
        if let Some(effort) = &self.effort {
            params["effort"] = effort.as_str().into();
        }
        steps.write(json!({ "id": TURN, "method": "turn/start", "params": params }).to_string());
        self.stage = Stage::Running;
    }

    /// The turn's id comes in a response and in a notification, either first.
    fn set_turn(&mut self, turn: &str, steps: &mut Steps) {
        if self.turn.is_some() || turn.is_empty() {
            return;
        }
        self.turn = Some(turn.to_owned());
        if self.interrupted {
            self.write_interrupt(steps);
        }
    }

    fn write_interrupt(&self, steps: &mut Steps) {
        if let Some(turn) = &self.turn {
            let params = json!({ "threadId": self.thread, "turnId": turn });
            steps.write(json!({ "id": INTERRUPT, "method": "turn/interrupt", "params": params }).to_string());
        }
    }

    fn request(&mut self, id: &Value, method: &str, params: &Value, steps: &mut Steps) {
        // A request after an interrupt is withdrawn with the turn; an answer would come too late.
        if self.interrupted {
            return;
        }
        let parsed = approval_request::parse(id, method, params, &self.items);
        if let Ok((_, pending)) = &parsed {
            self.items.mark_asked(&pending.about);
        }
        match parsed {
            Ok((approval, pending)) if !pending.is_named && !self.permissions.deny.is_empty() => {
                let text = format!("{} was refused: which tool it is about cannot be told", approval.prompt);
                steps.event(Event::Notice { text });
                steps.write(pending.answer(&Decision::Deny { reason: None }));
            }
            Ok((approval, pending)) if self.pending_approvals.len() < MOST_PENDING_APPROVALS => {
                self.pending_approvals.insert(approval.request.clone(), pending);
                steps.event(Event::ApprovalRequired(approval));
            }
            Ok((_, pending)) => steps.write(pending.answer(&Decision::Deny { reason: None })),
            Err(refusal) => steps.write(refusal),
        }
    }

    fn notification(&mut self, method: &str, params: &Value, steps: &mut Steps) {
        let item = &params["item"];
        let (id, delta) = (either_text(params, "itemId", "item_id"), text(params, "delta"));
        if !self.is_own(params) {
            return match method {
                "item/started" => self.started(item, steps),
                "item/completed" => {
                    let call = self.items.call_completed(item, steps);
                    self.ended_call(call.as_ref(), item, steps);
                }
                "serverRequest/resolved" => self.resolved(params, steps),
                _ => {}
            };
        }
        match method {
            "turn/started" => {
                let turn = &params["turn"];
                self.set_turn(text(turn, "id"), steps);
            }
            "item/started" => self.started(item, steps),
            "item/completed" => {
                let call = self.items.completed(item, steps);
                self.ended_call(call.as_ref(), item, steps);
            }
            "item/agentMessage/delta" => self.items.message_delta(id, delta, steps),
            "item/reasoning/summaryTextDelta" | "item/reasoning/textDelta" => {
                self.items.reasoning_delta(id, delta, steps)
            }
            "item/reasoning/summaryPartAdded" => self.items.reasoning_part(id, steps),
            "turn/plan/updated" => self.items.planned(params, "plan", steps),
            "thread/tokenUsage/updated" => {
                if let Some(usage) = params.pointer("/tokenUsage/total").and_then(usage) {
                    steps.event(Event::Usage(usage));
                }
            }
            "serverRequest/resolved" => self.resolved(params, steps),
            "error" => self.error(&params["error"], steps),
            "warning" | "guardianWarning" => notice(text(params, "message"), steps),
            "configWarning" => notice(text(params, "summary"), steps),
            "model/rerouted" => {
                let (from, to) = (text(params, "fromModel"), text(params, "toModel"));
                notice(&format!("the model was changed from {from} to {to}"), steps);
            }
            "turn/completed" => self.turn_completed(&params["turn"], steps),
            _ => {}
        }
    }

    /// Whether a notification is about this conversation, or about none.
    fn is_own(&self, params: &Value) -> bool {
        params.get("threadId").and_then(Value::as_str).is_none_or(|thread| thread == self.thread)
    }

    /// An error during the turn, after which it retries.
    fn error(&mut self, error: &Value, steps: &mut Steps) {
        let (message, details) = (text(error, "message"), text(error, "additionalDetails"));
        let info = &error["codexErrorInfo"];
        let said = if details.is_empty() { message } else { details };
        match failure::rejected(said, info) {
            Some(failure) if self.auth_failures.add() => self.fail(failure, steps),
            _ if details.is_empty() => notice(message, steps),
            _ => notice(&format!("{} ({})", failure::readable(message), failure::readable(details)), steps),
        }
    }

    fn started(&mut self, item: &Value, steps: &mut Steps) {
        self.auth_failures.reset();
        self.items.started(item, steps);
        let call = self.items.call_of(item).filter(|call| self.is_checked(call));
        let violation = call.and_then(|call| unapproved_call::begun(&call, item, &self.permissions));
        self.enforce(violation, steps);
    }

    fn ended_call(&mut self, call: Option<&Call>, item: &Value, steps: &mut Steps) {
        let call = call.filter(|call| self.is_checked(call));
        let violation = call.and_then(|call| unapproved_call::ended(call, item, &self.permissions));
        self.enforce(violation, steps);
    }

    /// In a read-only run the sandbox restricts Codex's own tools. It does not restrict MCP servers.
    fn is_checked(&self, call: &Call) -> bool {
        !self.read_only || call.server.is_some()
    }

    fn enforce(&mut self, violation: Option<UnapprovedCall>, steps: &mut Steps) {
        match violation {
            None => {}
            Some(UnapprovedCall::Warn(text)) => notice(&text, steps),
            Some(UnapprovedCall::Refuse(message)) => {
                self.write_interrupt(steps);
                self.fail(Failure { kind: FailureKind::Refused, message }, steps);
            }
        }
    }

    fn resolved(&mut self, params: &Value, steps: &mut Steps) {
        let request = params["requestId"].to_string();
        if self.pending_approvals.remove(&request).is_some() {
            steps.event(Event::ApprovalWithdrawn { request });
        }
    }

    fn turn_completed(&mut self, turn: &Value, steps: &mut Steps) {
        let id = text(turn, "id");
        if self.stage != Stage::Running || self.turn.as_deref().is_some_and(|own| own != id) {
            return;
        }
        let error = &turn["error"];
        match text(turn, "status") {
            "completed" => {
                self.withdraw(steps);
                let answer = self.items.end(steps);
                steps.done(answer);
                self.stage = Stage::Finished;
            }
            "interrupted" => self.fail(failure::interrupted(), steps),
            "failed" => {
                let info = &error["codexErrorInfo"];
                self.fail(failure::reported(text(error, "message"), info), steps);
            }
            status => {
                let message = format!("codex ended the turn as {status:?}, which is not known");
                self.fail(Failure { kind: FailureKind::Reported, message }, steps);
            }
        }
    }

    /// The turn is over: withdraws all open approval requests.
    fn withdraw(&mut self, steps: &mut Steps) {
        for request in std::mem::take(&mut self.pending_approvals).into_keys() {
            steps.event(Event::ApprovalWithdrawn { request });
        }
    }

    fn fail(&mut self, failure: Failure, steps: &mut Steps) {
        self.withdraw(steps);
        self.items.end(steps);
        steps.fail(failure.kind, failure.message);
        self.stage = Stage::Finished;
    }
}

impl Dialogue for AppServer {
    fn begin(&mut self, steps: &mut Steps) {
        let client = json!({ "name": "switchboard", "title": "Switchboard", "version": env!("CARGO_PKG_VERSION") });
        let capabilities = json!({ "experimentalApi": false, "optOutNotificationMethods": UNWANTED });
        let params = json!({ "clientInfo": client, "capabilities": capabilities });
        steps.write(json!({ "id": INITIALIZE, "method": "initialize", "params": params }).to_string());
    }

    fn line(&mut self, line: &str, steps: &mut Steps) {
        let Some(message) = parse(line) else { return };
        if self.stage == Stage::Finished {
            return;
        }
        let id = message.get("id").filter(|id| id.is_string() || id.is_number());
        let params = &message["params"];
        match (message.get("method").and_then(Value::as_str), id) {
            (Some(method), Some(id)) => self.request(id, method, params, steps),
            (Some(method), None) => self.notification(method, params, steps),
            (None, Some(id)) => self.response(id.as_u64().unwrap_or_default(), &message, steps),
            (None, None) => {}
        }
    }

    fn decide(&mut self, request: &str, decision: &Decision, steps: &mut Steps) {
        if let Some(pending) = self.pending_approvals.remove(request) {
            steps.write(pending.answer(decision));
        }
    }

    fn interrupt(&mut self, steps: &mut Steps) {
        if self.interrupted || self.stage == Stage::Finished {
            return;
        }
        self.interrupted = true;
        self.withdraw(steps);
        if self.stage == Stage::Running {
            self.write_interrupt(steps);
        } else {
            self.fail(failure::interrupted(), steps);
        }
    }

    fn ended(&mut self, exit: &Exit, steps: &mut Steps) {
        if self.stage == Stage::Finished {
            return;
        }
        let has_begun = self.stage == Stage::Running;
        let failure = if self.interrupted { failure::interrupted() } else { failure::at_exit(exit, has_begun) };
        self.fail(failure, steps);
    }
}

/// An error never ends the turn by itself: retries are reported as errors too, their cause in a separate member.
fn notice(text: &str, steps: &mut Steps) {
    if !text.is_empty() {
        steps.event(Event::Notice { text: failure::readable(text) });
    }
}
