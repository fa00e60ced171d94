//! `codex exec --json`: the prompt goes in, then lines come out until the turn has ended.

use serde_json::Value;

use super::failure;
use super::items::{Call, Items, either_text, usage};
use crate::adapters::auth_failures::AuthFailures;
use crate::adapters::dialogue::{Exit, Failure, FailureKind, Steps};
use crate::adapters::event::Event;
use crate::adapters::json::text;
use crate::adapters::one_way::OutputReader;
use crate::adapters::order::Order;

#[derive(Default)]
pub(super) struct ExecOutput {
    model: Option<String>,
    resumed: Option<String>,
    items: Items,
    auth_failures: AuthFailures,
    has_begun: bool,
}

impl ExecOutput {
    pub(super) fn new(order: &Order) -> Self {
        Self { model: order.model.clone(), resumed: order.session.resumed().cloned(), ..Self::default() }
    }

    fn thread_started(&mut self, line: &Value, steps: &mut Steps) {
        self.has_begun = true;
        let session = either_text(line, "thread_id", "threadId");
        if let Some(resumed) = &self.resumed
            && !resumed.eq_ignore_ascii_case(session)
        {
            let message = format!("codex began a new conversation instead of taking up {resumed}");
            return self.fail(Failure { kind: FailureKind::UnknownSession, message }, steps);
        }
        steps.event(Event::Init { session: Some(session.to_owned()), model: self.model.clone() });
    }

    /// An error never ends the turn by itself: retries are reported as errors too.
    fn error(&mut self, message: &str, steps: &mut Steps) {
        match failure::rejected(message, &Value::Null) {
            Some(failure) if self.auth_failures.add() => self.fail(failure, steps),
            _ => steps.event(Event::Notice { text: failure::readable(message) }),
        }
    }

    /// It cannot ask, and so refuses tools of MCP servers that want an approval. All is allowed, so that surprises.
    fn explain(call: Option<&Call>, item: &Value, steps: &mut Steps) {
        let Some(Call { tool, server: Some(server), .. }) = call else { return };
        let said = item.pointer("/error/message").and_then(Value::as_str).unwrap_or_default();
        if said.contains("requires approval") {
            let setting = format!("mcp_servers.{server}.default_tools_approval_mode = \"approve\"");
            steps.event(Event::Notice {
                text: format!("codex refused {tool} because it cannot ask here: set `{setting}` in its config.toml"),
            });
        }
    }

    fn turn_completed(&mut self, line: &Value, steps: &mut Steps) {
        if let Some(usage) = line.get("usage").and_then(usage) {
            steps.event(Event::Usage(usage));
        }
        let answer = self.items.end(steps);
        steps.done(answer);
    }

    fn fail(&mut self, failure: Failure, steps: &mut Steps) {
        self.items.end(steps);
        steps.fail(failure.kind, failure.message);
    }
}

impl OutputReader for ExecOutput {
    fn line(&mut self, line: &Value, steps: &mut Steps) {
        let item = &line["item"];
        if item.is_object() && text(item, "type") != "error" {
            self.auth_failures.reset();
        }
        match text(line, "type") {
            "thread.started" => self.thread_started(line, steps),
            "item.started" => self.items.started(item, steps),
            "item.updated" => self.items.updated(item, steps),
            "item.completed" => {
                let call = self.items.completed(item, steps);
                Self::explain(call.as_ref(), item, steps);
            }
            "error" => self.error(text(line, "message"), steps),
            "turn.completed" => self.turn_completed(line, steps),
            "turn.failed" => {
                let error = &line["error"];
                self.fail(failure::reported(text(error, "message"), &Value::Null), steps);
            }
            _ => {}
        }
    }

    fn ended(&mut self, exit: &Exit, interrupted: bool, steps: &mut Steps) {
        let failure = if interrupted { failure::interrupted() } else { failure::at_exit(exit, self.has_begun) };
        self.fail(failure, steps);
    }
}
