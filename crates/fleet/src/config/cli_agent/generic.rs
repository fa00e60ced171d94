//! The keys of `cli: generic` with a `command`.

use schemars::{JsonSchema, Schema};
use serde::Serialize;
use serde_json::json;
use switchboard_cli_agents::adapters::{ApprovalPattern, FieldError};
use switchboard_host::config::section::Section;
use switchboard_host::word_setting;

/// How the program gets the prompt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Input {
    /// On its standard input.
    #[default]
    Stdin,
    /// As its last argument.
    Argument,
}

/// What the program writes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Output {
    /// Text, all of which is the answer.
    #[default]
    Text,
    /// A JSON object on each line, each of them an event.
    Jsonl,
}

/// What stands before a prompt that is an argument.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Separator {
    /// `--`, so that no prompt can be taken for an option.
    #[default]
    Dashes,
    /// Nothing, for programs that do not know `--`. A prompt that begins with a dash is refused.
    None,
}

/// How a program asks for approval.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields, transform = in_one_way)]
pub struct Approval {
    /// Regular expression that fits the line on which it asks, for a program that writes text.
    #[schemars(default)]
    pub pattern: Option<String>,
    /// What it is answered if it may, with `pattern`.
    #[schemars(default = "usual_yes")]
    pub yes: String,
    /// What it is answered if it may not, with `pattern`.
    #[schemars(default = "usual_no")]
    pub no: String,
    /// Whether it asks with an event, for a program that writes jsonl.
    ///
    /// Then it gets the prompt as an event too, and the answers.
    #[schemars(default)]
    pub events: bool,
}

/// It says one of the two.
fn in_one_way(schema: &mut Schema) {
    schema.insert("oneOf".to_owned(), json!([{ "required": ["pattern"] }, { "required": ["events"] }]));
}

fn usual_yes() -> String {
    ApprovalPattern::YES.to_owned()
}

fn usual_no() -> String {
    ApprovalPattern::NO.to_owned()
}

impl Approval {
    /// Reads it; nothing when it cannot be one, which is then reported.
    pub(super) fn read(section: &mut Section<'_, '_>) -> Option<Self> {
        let (mut yes, mut no, mut events) = (usual_yes(), usual_no(), false);
        section.read("events", &mut events);
        let pattern = section.require::<String>("pattern");
        section.read("yes", &mut yes);
        section.read("no", &mut no);
        if events {
            for key in ["pattern", "yes", "no"] {
                if section.is_set(key) {
                    section.refuse(key, "events says already how it asks", "remove one of the two");
                }
            }
            return Some(Self { pattern: None, yes, no, events });
        }
        if !section.is_set("pattern") {
            let right = "add pattern: with a regular expression for the question, such as '\\[y/N\\] *$', or events: true \
                         for a program that writes jsonl";
            section.refuse_all("has no pattern", right);
        }
        let built = pattern.as_deref().map(|pattern| ApprovalPattern::new(pattern, &yes, &no));
        if let Some(Err(FieldError { field, wrong, right })) = built {
            section.refuse(&field, wrong, right);
        }
        if yes == no {
            section.refuse_all(format!("yes and no are both \"{yes}\""), "write two answers that differ");
        }
        Some(Self { pattern: Some(pattern?), yes, no, events })
    }
}

word_setting!(Input: "stdin" => Stdin or "argument" => Argument);

word_setting!(Separator: "dashes" => Dashes or "none" => None);

word_setting!(Output: "text" => Text or "jsonl" => Jsonl);
