//! Approval requests of the program and their answers.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::tools::describe;
use crate::adapters::dialogue::Steps;
use crate::adapters::event::{Approval, Choice, ChoiceKind, Decision, Event};
use crate::adapters::json::{list, text};
use crate::adapters::truncate::cut;

/// The most approval requests open at once.
const MOST_OPEN: usize = 1000;

/// The longest description of a refused call, in characters.
const LONGEST_DESCRIPTION: usize = 2000;

/// The reason that the model gets when a tool is refused without one.
const REFUSED: &str = "This was refused. Do not try it again in another way.";

/// The tool with which the model asks the user to choose. Answers are put into what it is called with.
const ASK_USER: &str = "AskUserQuestion";

/// The open approval requests, and the refused calls.
#[derive(Debug, Default)]
pub(super) struct Approvals {
    cwd: PathBuf,
    open: Vec<PendingApproval>,
    refused: Vec<RefusedCall>,
}

#[derive(Debug)]
struct PendingApproval {
    /// As the program writes it; echoed exactly.
    id: Value,
    approval: Approval,
    /// Which call it is about.
    call: String,
}

#[derive(Debug)]
struct RefusedCall {
    call: String,
    tool: String,
}

impl Approvals {
    pub(super) fn new(cwd: &Path) -> Self {
        Self { cwd: cwd.to_owned(), ..Self::default() }
    }

    /// A line of type `control_request`. All that we do not know is answered with an error, or the program would wait.
    pub(super) fn ask(&mut self, line: &Value, steps: &mut Steps) {
        let Some(id) = line.get("request_id").filter(|id| !id.is_null()) else {
            return;
        };
        let asked = &line["request"];
        let (subtype, tool) = (text(asked, "subtype"), text(asked, "tool_name"));
        if subtype != "can_use_tool" || tool.is_empty() || self.open.len() >= MOST_OPEN {
            let error = format!("Unsupported control request subtype: {subtype}");
            let response = json!({"subtype": "error", "request_id": id, "error": error});
            steps.write(json!({"type": "control_response", "response": response}).to_string());
            return;
        }
        let input = asked.get("input").cloned().unwrap_or_else(|| json!({}));
        let choices = if tool == ASK_USER { choices(&input) } else { Vec::new() };
        let approval = Approval {
            request: name(id),
            tool: tool.to_owned(),
            prompt: if tool == ASK_USER { questions(&input) } else { describe(tool, &input, &self.cwd) },
            // A yes would be no answer to what the model wants to know.
            no_plain_yes: !choices.is_empty(),
            takes_reason: true,
            choices,
            input,
        };
        self.open.retain(|question| question.id != *id);
        let call = text(asked, "tool_use_id").to_owned();
        self.open.push(PendingApproval { id: id.clone(), approval: approval.clone(), call });
        steps.event(Event::ApprovalRequired(approval));
    }

    /// A line of type `control_cancel_request`.
    pub(super) fn withdraw(&mut self, line: &Value, steps: &mut Steps) {
        let id = &line["request_id"];
        let Some(at) = self.open.iter().position(|question| question.id == *id) else {
            return;
        };
        let question = self.open.remove(at);
        steps.event(Event::ApprovalWithdrawn { request: question.approval.request });
    }

    /// Writes an answer. What the program suggests to remember is never sent back: it reaches further than the
    /// question, up to a rule in a file of the project and a mode in which all edits are allowed.
    pub(super) fn decide(&mut self, request: &str, decision: &Decision, steps: &mut Steps) {
        let Some(at) = self.open.iter().position(|question| question.approval.request == request) else {
            return;
        };
        let PendingApproval { id, approval, call } = self.open.remove(at);
        let allow = |input: Value| json!({"behavior": "allow", "updatedInput": input});
        let answer = match decision {
            Decision::Allow => allow(approval.input),
            Decision::Choose(choice) if approval.choices.iter().any(|offered| offered.id == *choice) => {
                allow(answered(approval.input, choice))
            }
            Decision::Choose(choice) if choice == "allow" => allow(approval.input),
            Decision::Deny { .. } | Decision::Choose(_) => {
                let reason = match decision {
                    Decision::Deny { reason: Some(reason) } if !reason.trim().is_empty() => reason,
                    _ => REFUSED,
                };
                self.refused(call, approval.tool);
                json!({"behavior": "deny", "message": reason})
            }
        };
        let response = json!({"subtype": "success", "request_id": id, "response": answer});
        steps.write(json!({"type": "control_response", "response": response}).to_string());
    }

    pub(super) fn refused(&mut self, call: String, tool: String) {
        self.refused.push(RefusedCall { call, tool });
    }

    /// A refused call, as a result lists it, for people.
    pub(super) fn describe(&self, denial: &Value) -> String {
        let call = describe(text(denial, "tool_name"), &denial["tool_input"], &self.cwd);
        cut(&call, LONGEST_DESCRIPTION).into_owned()
    }

    /// Whether a refused call, as a result lists it, was refused here.
    pub(super) fn was_refused(&self, denial: &Value) -> bool {
        let (call, tool) = (text(denial, "tool_use_id"), text(denial, "tool_name"));
        self.refused.iter().any(|refused| {
            let unnamed = refused.call.is_empty() || call.is_empty();
            if unnamed { refused.tool == tool } else { refused.call == call }
        })
    }
}

/// A request's name as a text.
fn name(id: &Value) -> String {
    id.as_str().map_or_else(|| id.to_string(), str::to_owned)
}

/// What the model asks the user, with what can be chosen.
fn questions(input: &Value) -> String {
    let question = |question: &Value| {
        let mut lines = vec![text(question, "question").to_owned()];
        lines.extend(list(question, "options").iter().map(|option| {
            let (label, description) = (text(option, "label"), text(option, "description"));
            if description.is_empty() { format!("- {label}") } else { format!("- {label}: {description}") }
        }));
        lines.join("\n")
    };
    let questions: Vec<String> = list(input, "questions").iter().map(question).collect();
    if questions.is_empty() { ASK_USER.to_owned() } else { questions.join("\n") }
}

/// The choices, if there is one question with one answer. Others can be answered only by text: the reason of a refusal
/// reaches the model.
fn choices(input: &Value) -> Vec<Choice> {
    let [question] = list(input, "questions") else {
        return Vec::new();
    };
    if question.get("multiSelect").and_then(Value::as_bool).unwrap_or_default() {
        return Vec::new();
    }
    let labels = list(question, "options").iter().map(|option| text(option, "label")).filter(|label| !label.is_empty());
    labels.map(|label| Choice { id: label.to_owned(), label: label.to_owned(), kind: ChoiceKind::Other }).collect()
}

/// The model's question with its answer.
fn answered(mut input: Value, choice: &str) -> Value {
    let question = list(&input, "questions").first().map(|question| text(question, "question").to_owned());
    if let (Some(question), Some(members)) = (question, input.as_object_mut()) {
        members.insert("answers".to_owned(), json!({question: choice}));
    }
    input
}
