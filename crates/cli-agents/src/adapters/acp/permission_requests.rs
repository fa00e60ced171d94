//! Permission requests of an agent and their responses.

use std::collections::{BTreeMap, BTreeSet};

use agent_client_protocol_schema::v1::{
    Error, RequestId, RequestPermissionOutcome, RequestPermissionResponse, SelectedPermissionOutcome, ToolCallUpdate,
};
use serde_json::Value;

use super::message;
use super::tools::Tools;
use crate::adapters::dialogue::Steps;
use crate::adapters::event::{Approval, Choice, ChoiceKind, Decision, Event};
use crate::adapters::json::list;

/// Further open requests are cancelled at once: no approver can answer that many.
const MOST_OPEN: usize = 1_000;

/// The permission requests of one turn.
#[derive(Default)]
pub(super) struct PermissionRequests {
    open: BTreeMap<String, PendingRequest>,
    /// The ids of all requests so far, so that none is passed on twice.
    asked: BTreeSet<String>,
}

struct PendingRequest {
    id: RequestId,
    tool_call: String,
    choices: Vec<Choice>,
}

impl PermissionRequests {
    /// A request of the agent. Parts that cannot be parsed are left out; it is passed on all the same.
    pub(super) fn ask(&mut self, id: RequestId, params: &Value, tools: &mut Tools, steps: &mut Steps) {
        // As JSON, so that the number 1 and the text "1" are two.
        let request = serde_json::to_string(&id).unwrap_or_default();
        if self.asked.contains(&request) {
            return;
        }
        if self.open.len() >= MOST_OPEN {
            return cancel(id, steps);
        }
        self.asked.insert(request.clone());
        let options = list(params, "options");
        let mut choices: Vec<Choice> = options.iter().filter_map(choice).collect();
        let offers = |kind| choices.iter().any(|choice| choice.kind == kind);
        let no_plain_yes = !offers(ChoiceKind::AllowOnce);
        if no_plain_yes {
            // A wider grant must not be mistaken for a plain yes: it is offered under its own name.
            for choice in choices.iter_mut().filter(|choice| choice.kind == ChoiceKind::AllowAlways) {
                choice.kind = ChoiceKind::Other;
            }
        }
        let update = params.get("toolCall").cloned().unwrap_or_default();
        let update = serde_json::from_value(update).unwrap_or_else(|_| {
            // The id of the request stands in for a call without one.
            ToolCallUpdate::new(request.clone(), Default::default())
        });
        let tool_call = update.tool_call_id.to_string();
        let Some(call) = tools.mark_asked(update, steps) else {
            return cancel(id, steps);
        };
        let (tool, input, prompt) = (call.tool().to_owned(), call.input(), call.prompt());
        self.open.insert(request.clone(), PendingRequest { id, tool_call, choices: choices.clone() });
        // The protocol's answer is the id of an option and nothing else.
        let takes_reason = false;
        let approval = Approval { request, tool, input, prompt, choices, no_plain_yes, takes_reason };
        steps.event(Event::ApprovalRequired(approval));
    }

    pub(super) fn decide(&mut self, request: &str, decision: &Decision, tools: &mut Tools, steps: &mut Steps) {
        let Some(pending) = self.open.remove(request) else {
            return;
        };
        let first = |kind| pending.choices.iter().find(|choice| choice.kind == kind);
        let choice = match decision {
            // A wider grant is chosen only by its id.
            Decision::Allow => first(ChoiceKind::AllowOnce).or_else(|| first(ChoiceKind::RejectOnce)),
            Decision::Deny { .. } => first(ChoiceKind::RejectOnce).or_else(|| first(ChoiceKind::RejectAlways)),
            Decision::Choose(id) => pending.choices.iter().find(|choice| choice.id == *id),
        };
        if *decision == Decision::Allow && choice.is_none_or(|choice| choice.kind != ChoiceKind::AllowOnce) {
            let takes = wider(&pending.choices);
            let text = format!("The agent has no yes for this one call, so it was answered no{takes}.");
            steps.event(Event::Notice { text });
        }
        let refused = [ChoiceKind::RejectOnce, ChoiceKind::RejectAlways];
        if choice.is_none_or(|choice| refused.contains(&choice.kind)) {
            tools.refused(&pending.tool_call);
        }
        match choice {
            Some(choice) => select(pending.id, &choice.id, steps),
            None => cancel(pending.id, steps),
        }
    }

    /// The agent withdraws a request. It still expects a response, which is that the request was cancelled.
    pub(super) fn withdraw(&mut self, id: &Value, steps: &mut Steps) {
        let request = id.to_string();
        if let Some(pending) = self.open.remove(&request) {
            message::answer(steps, pending.id, Err::<(), _>(Error::request_cancelled()));
            steps.event(Event::ApprovalWithdrawn { request });
        }
    }

    /// The turn is over, and with it every open request.
    pub(super) fn close(&mut self, steps: &mut Steps) {
        for (request, _) in std::mem::take(&mut self.open) {
            steps.event(Event::ApprovalWithdrawn { request });
        }
    }

    /// The turn is being cancelled: every open request is answered with that.
    pub(super) fn cancel_all(&mut self, steps: &mut Steps) {
        for (_, pending) in std::mem::take(&mut self.open) {
            cancel(pending.id, steps);
        }
    }
}

/// What could be answered instead of a plain yes, for people.
fn wider(choices: &[Choice]) -> String {
    let offered = choices.iter().filter(|choice| choice.kind == ChoiceKind::Other);
    let names: Vec<String> = offered.map(|choice| format!("{} ({})", choice.id, choice.label)).collect();
    if names.is_empty() { String::new() } else { format!("; it takes {}", names.join(", ")) }
}

/// One offered answer. Only its kind is reliable; names and order differ from agent to agent.
fn choice(option: &Value) -> Option<Choice> {
    let id = option.get("optionId")?.as_str()?.to_owned();
    let label = option.get("name").and_then(Value::as_str).unwrap_or(&id).to_owned();
    let kind = option.get("kind").cloned().unwrap_or_default();
    Some(Choice { id, label, kind: serde_json::from_value(kind).unwrap_or(ChoiceKind::Other) })
}

fn select(id: RequestId, option: &str, steps: &mut Steps) {
    let selected = SelectedPermissionOutcome::new(option.to_owned());
    let outcome = RequestPermissionOutcome::Selected(selected);
    message::answer(steps, id, Ok(RequestPermissionResponse::new(outcome)));
}

/// Answers a request with neither yes nor no.
pub(super) fn cancel(id: RequestId, steps: &mut Steps) {
    message::answer(steps, id, Ok(RequestPermissionResponse::new(RequestPermissionOutcome::Cancelled)));
}
