//! Questions of a program that writes JSON lines, and their answers as JSON lines.

use serde_json::{Value, json};

use crate::adapters::declared::json_line;
use crate::adapters::declared::rule::Fields;
use crate::adapters::declared::text_lines::PROMPT_TOOL;
use crate::adapters::event::{Approval, Choice, ChoiceKind, Decision};

/// The most open questions; a program with more has lost count.
const MOST_QUESTIONS: usize = 100;

#[derive(Debug, Default)]
pub(crate) struct Questions {
    open: Vec<PendingQuestion>,
    asked: u64,
}

#[derive(Debug)]
struct PendingQuestion {
    request: String,
    /// The same as the program spelled it: perhaps a number.
    spelled: Value,
    choices: Vec<String>,
}

/// The question in a line, and its id as the program spelled it; `number` identifies one without an id.
fn question(fields: &Fields, line: &Value, number: u64) -> (Approval, Value) {
    let tool = fields.text("tool", line).unwrap_or_else(|| PROMPT_TOOL.to_owned());
    let spelled = fields.first("request", line).unwrap_or_else(|| json!(number.to_string()));
    let choices = fields.first("choices", line).unwrap_or_default();
    let approval = Approval {
        request: json_line::text(&spelled).unwrap_or_default(),
        prompt: fields.text("prompt", line).unwrap_or_else(|| format!("Use {tool}")),
        tool,
        input: fields.first("input", line).unwrap_or_else(|| json!({})),
        choices: choices.as_array().into_iter().flatten().filter_map(choice).collect(),
        no_plain_yes: false,
        takes_reason: true,
    };
    (approval, spelled)
}

fn choice(offered: &Value) -> Option<Choice> {
    let text = |member: &str| offered.get(member).and_then(json_line::text);
    let id = text("id")?;
    let label = text("label").unwrap_or_else(|| id.clone());
    let kind = offered.get("kind").and_then(|kind| serde_json::from_value(kind.clone()).ok());
    Some(Choice { id, label, kind: kind.unwrap_or(ChoiceKind::Other) })
}

impl Questions {
    /// Reads a question. None if it is open already; else the error says that there are too many.
    pub(crate) fn open(&mut self, fields: &Fields, line: &Value) -> Option<Result<Approval, String>> {
        let (approval, spelled) = question(fields, line, self.asked + 1);
        if self.open.iter().any(|question| question.request == approval.request) {
            return None;
        }
        if self.open.len() == MOST_QUESTIONS {
            return Some(Err(format!("has more than {MOST_QUESTIONS} questions open")));
        }
        self.asked += 1;
        let choices = approval.choices.iter().map(|choice| choice.id.clone()).collect();
        self.open.push(PendingQuestion { request: approval.request.clone(), spelled, choices });
        Some(Ok(approval))
    }

    /// Closes a question; returns whether it was open.
    pub(crate) fn close(&mut self, request: &str) -> bool {
        let open = self.open.len();
        self.open.retain(|question| question.request != request);
        self.open.len() < open
    }

    /// The line that answers a question; none if it is not open, or the choice was not offered.
    pub(crate) fn answer(&mut self, request: &str, decision: &Decision) -> Option<String> {
        let question = self.open.iter().find(|question| question.request == request)?;
        let mut answer = json!({ "kind": "approval", "request": question.spelled });
        match decision {
            Decision::Allow => answer["decision"] = json!("allow"),
            Decision::Deny { reason } => {
                answer["decision"] = json!("deny");
                if let Some(reason) = reason {
                    answer["reason"] = json!(reason);
                }
            }
            Decision::Choose(choice) if question.choices.contains(choice) => {
                answer["decision"] = json!("choose");
                answer["choice"] = json!(choice);
            }
            Decision::Choose(_) => return None,
        }
        self.close(request);
        Some(answer.to_string())
    }
}
