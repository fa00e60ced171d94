//! Questions of a program that writes JSON lines, and their answers as JSON lines.

use serde_json::{Value, json};

use crate::adapters::declared::json_line;
use crate::adapters::declared::path::Path;
use crate::adapters::declared::section::Section;
use crate::adapters::declared::text_lines::PROMPT_TOOL;
use crate::adapters::event::{Approval, Choice, ChoiceKind, Decision};

/// The most open questions; a program with more has lost count.
pub(crate) const MOST_QUESTIONS: usize = 100;

/// The paths of a question's fields.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ApprovalPaths {
    request: Option<Path>,
    tool: Option<Path>,
    input: Option<Path>,
    prompt: Option<Path>,
    choices: Option<Path>,
}

/// The questions without an answer.
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

impl ApprovalPaths {
    pub(crate) fn read(section: &mut Section<'_, '_>) -> Self {
        Self {
            request: section.path("request"),
            tool: section.path("tool"),
            input: section.path("input"),
            prompt: section.path("prompt"),
            choices: section.path("choices"),
        }
    }

    /// The question in a line, and its id as the program spelled it; `number` identifies one without an id.
    pub(crate) fn of(&self, line: &Value, number: u64) -> (Approval, Value) {
        let at = |path: &Option<Path>| path.as_ref().and_then(|path| path.first(line)).cloned();
        let text = |path: &Option<Path>| at(path).as_ref().and_then(json_line::text);
        let tool = text(&self.tool).unwrap_or_else(|| PROMPT_TOOL.to_owned());
        let spelled = at(&self.request).unwrap_or_else(|| json!(number.to_string()));
        let choices = at(&self.choices).unwrap_or_default();
        let approval = Approval {
            request: json_line::text(&spelled).unwrap_or_default(),
            prompt: text(&self.prompt).unwrap_or_else(|| format!("Use {tool}")),
            tool,
            input: at(&self.input).unwrap_or_else(|| json!({})),
            choices: choices.as_array().into_iter().flatten().filter_map(choice).collect(),
            no_plain_yes: false,
            takes_reason: true,
        };
        (approval, spelled)
    }
}

fn choice(offered: &Value) -> Option<Choice> {
    let text = |member: &str| offered.get(member).and_then(json_line::text);
    let id = text("id")?;
    let label = text("label").unwrap_or_else(|| id.clone());
    let kind = offered.get("kind").and_then(|kind| serde_json::from_value(kind.clone()).ok());
    Some(Choice { id, label, kind: kind.unwrap_or(ChoiceKind::Other) })
}

impl Questions {
    /// The number of the next question.
    pub(crate) fn next(&self) -> u64 {
        self.asked + 1
    }

    pub(crate) fn is_full(&self) -> bool {
        self.open.len() == MOST_QUESTIONS
    }

    pub(crate) fn has(&self, request: &str) -> bool {
        self.open.iter().any(|question| question.request == request)
    }

    pub(crate) fn open(&mut self, approval: &Approval, spelled: Value) {
        self.asked += 1;
        let choices = approval.choices.iter().map(|choice| choice.id.clone()).collect();
        self.open.push(PendingQuestion { request: approval.request.clone(), spelled, choices });
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
