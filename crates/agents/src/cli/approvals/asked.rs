//! The message that asks a program's question, in words for people and as data for programs.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::Value;
use switchboard_a2a::{Json, Message, Part, Role};
use switchboard_adapters::{Choice, ChoiceKind, cut, spelled_out};

use super::{Question, said};

/// Input of a tool up to this many bytes of JSON is shown whole.
const INPUT_BYTES: usize = 256 << 10;
/// Of longer input the beginning is shown.
const INPUT_CHARACTERS: usize = 4_000;
/// The longest prompt that is shown.
const PROMPT_CHARACTERS: usize = 2_000;
/// The longest label of an answer that is shown.
const LABEL_CHARACTERS: usize = 100;

/// The data part of a question.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Asked<'a> {
    approval_id: &'a str,
    tool: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    input: Option<&'a Value>,
    /// The beginning of an input that is too long to show.
    #[serde(skip_serializing_if = "Option::is_none")]
    input_beginning: Option<String>,
    options: Vec<OfferedOption<'a>>,
    expires_at: String,
}

#[derive(Serialize)]
struct OfferedOption<'a> {
    id: Cow<'a, str>,
    label: &'a str,
}

/// One of the program's own answers.
pub(super) struct OwnChoice<'a> {
    /// What it is offered under.
    pub(super) id: Cow<'a, str>,
    pub(super) choice: &'a Choice,
}

impl Question {
    /// The message that asks. `note` comes before it, where an answer could not be taken.
    pub(in crate::cli) fn message(&self, note: Option<&str>) -> Message {
        let approval = &self.approval;
        let prompt = cut(approval.prompt.trim(), PROMPT_CHARACTERS);
        let mut text = note.map(|note| format!("{note}\n")).unwrap_or_default();
        text.push_str(&format!("Approve: {prompt}?\n"));
        text.push_str(&match approval.no_plain_yes {
            true => "Answer n, with a reason if you like; a plain yes is not taken here.".to_owned(),
            false => format!(
                "Answer y (this once), always (every {} of this task) or n, with a reason if you like.",
                approval.tool
            ),
        });
        let own: Vec<String> = self.own_choices().iter().map(OwnChoice::shown).collect();
        if !own.is_empty() {
            text.push_str(&format!(" It also takes {}.", own.join(", ")));
        }
        let mut message = Message::text(Role::Agent, spelled_out(&text));
        message.parts.extend(Json::from_serialize(&self.asked()).map(Part::data));
        message
    }

    fn asked(&self) -> Asked<'_> {
        let input = &self.approval.input;
        let written = input.to_string();
        let is_short = written.len() <= INPUT_BYTES;
        let usual = [("allow", "Allow once"), ("always", "Allow for this task"), ("deny", "Deny")];
        let usual = usual.into_iter().filter(|(id, _)| *id == "deny" || !self.approval.no_plain_yes);
        let usual = usual.map(|(id, label)| OfferedOption { id: id.into(), label });
        let own = self.own_choices().into_iter().map(|own| OfferedOption { id: own.id, label: &own.choice.label });
        Asked {
            approval_id: &self.id,
            tool: &self.approval.tool,
            input: is_short.then_some(input),
            input_beginning: (!is_short).then(|| cut(&written, INPUT_CHARACTERS).into_owned()),
            options: usual.chain(own).collect(),
            expires_at: self.expires_at.to_string(),
        }
    }

    /// What the program offers beyond yes and no. What reads as a word of ours means what it always means, so an answer
    /// of that name is offered under another.
    pub(super) fn own_choices(&self) -> Vec<OwnChoice<'_>> {
        let choices = &self.approval.choices;
        let ids: BTreeSet<&str> = choices.iter().map(|choice| choice.id.as_str()).collect();
        let mut seen = BTreeSet::new();
        let own = choices.iter().filter(|choice| choice.kind == ChoiceKind::Other);
        let own = own.filter(|choice| seen.insert(choice.id.as_str())).map(|choice| {
            let mut id = Cow::Borrowed(choice.id.as_str());
            if said::spoken(&id).is_some() {
                id = Cow::Owned(format!("option-{id}"));
                while ids.contains(&*id) {
                    id = Cow::Owned(format!("option-{id}"));
                }
            }
            OwnChoice { id, choice }
        });
        own.collect()
    }
}

impl OwnChoice<'_> {
    /// For people.
    fn shown(&self) -> String {
        let (id, label) = (spelled_out(&self.id), spelled_out(&self.choice.label));
        match id.eq_ignore_ascii_case(&label) {
            true => id.into_owned(),
            false => format!("{id} ({})", cut(&label, LABEL_CHARACTERS)),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests::question;
    use super::*;

    #[test]
    fn a_question_says_what_how_and_until_when() {
        let question = question(&[]);
        let message = serde_json::to_value(question.message(Some("I did not understand that."))).unwrap();
        let text = message["parts"][0]["text"].as_str().unwrap();
        assert_eq!(
            text,
            "I did not understand that.\nApprove: Bash: cargo test?\n\
             Answer y (this once), always (every Bash of this task) or n, with a reason if you like."
        );
        let data = &message["parts"][1]["data"];
        assert_eq!(data["tool"], "Bash");
        assert_eq!(data["input"], json!({"command": "cargo test"}));
        assert_eq!(data["options"][1], json!({"id": "always", "label": "Allow for this task"}));
        assert_eq!(data["approvalId"], question.id);
        assert_eq!(data["expiresAt"], "2023-11-14T22:13:20.000Z");
    }

    #[test]
    fn long_input_is_shown_in_part() {
        let mut question = question(&[]);
        question.approval.input = json!({"content": "ö".repeat(INPUT_BYTES)});
        let data = serde_json::to_value(question.asked()).unwrap();
        assert!(data.get("input").is_none());
        assert!(data["inputBeginning"].as_str().unwrap().ends_with("ö…"));
    }
}
