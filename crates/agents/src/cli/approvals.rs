//! A program's question as a task's question, and the caller's message as its answer.
//!
//! Every question gets an id of its own. An answer that names the id is bound to that very question: one that comes
//! too late, twice, or after a restart finds another question open, or none, and decides nothing. An answer in plain
//! words names no id and belongs to the question that was open when it came, by the order of the log. One that came while
//! none was open decides nothing, also not a later question, and is no work either.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use switchboard_a2a::{Json, Message, Part, PartContent, Role, Timestamp};
use switchboard_adapters::{Approval, ChoiceKind, Decision, cut, spelled_out};

/// Input of a tool up to this many bytes of JSON is shown whole.
const INPUT_BYTES: usize = 256 << 10;
/// Of longer input the beginning is shown.
const INPUT_CHARACTERS: usize = 4_000;
/// The longest prompt that is shown.
const PROMPT_CHARACTERS: usize = 2_000;

/// A question that waits for an answer.
pub(super) struct Question {
    /// What answers are bound to.
    pub(super) id: String,
    pub(super) approval: Approval,
    /// When nobody is waited for any longer.
    pub(super) expires_at: Timestamp,
}

/// What a message says to a question.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// Do this.
    Decided(Decision),
    /// Allow it, and every use of this tool for the rest of the task.
    Always,
    /// It answers another question, which is closed.
    Expired(String),
    /// It cannot be understood.
    Unclear,
}

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
    id: &'a str,
    label: &'a str,
}

/// The data part of an answer.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Answered {
    approval_id: Option<String>,
    #[serde(alias = "option", alias = "optionId")]
    decision: Option<String>,
    reason: Option<String>,
}

impl Question {
    /// A program's question under a new id.
    pub(super) fn new(approval: Approval, expires_at: Timestamp) -> Self {
        Self { id: uuid::Uuid::new_v4().to_string(), approval, expires_at }
    }

    /// The message that asks. `note` comes before it, where an answer could not be taken.
    pub(super) fn message(&self, note: Option<&str>) -> Message {
        let approval = &self.approval;
        let prompt = spelled_out(approval.prompt.trim());
        let prompt = cut(&prompt, PROMPT_CHARACTERS);
        let mut text = note.map(|note| format!("{note}\n")).unwrap_or_default();
        text.push_str(&format!("Approve: {prompt}?\n"));
        text.push_str(&format!(
            "Answer y (this once), always (every {} of this task) or n, with a reason if you like.",
            approval.tool
        ));
        let own: Vec<&str> = self.own_choices().map(|choice| choice.id.as_str()).collect();
        if !own.is_empty() {
            text.push_str(&format!(" It also takes {}.", own.join(", ")));
        }
        let mut message = Message::text(Role::Agent, text);
        message.parts.extend(Json::from_serialize(&self.asked()).map(Part::data));
        message
    }

    fn asked(&self) -> Asked<'_> {
        let input = &self.approval.input;
        let written = input.to_string();
        let is_short = written.len() <= INPUT_BYTES;
        let usual = [("allow", "Allow once"), ("always", "Allow for this task"), ("deny", "Deny")];
        let usual = usual.into_iter().map(|(id, label)| OfferedOption { id, label });
        let own = self.own_choices().map(|choice| OfferedOption { id: &choice.id, label: &choice.label });
        Asked {
            approval_id: &self.id,
            tool: &self.approval.tool,
            input: is_short.then_some(input),
            input_beginning: (!is_short).then(|| cut(&written, INPUT_CHARACTERS).into_owned()),
            options: usual.chain(own).collect(),
            expires_at: self.expires_at.to_string(),
        }
    }

    /// What the program offers beyond yes and no.
    fn own_choices(&self) -> impl Iterator<Item = &switchboard_adapters::Choice> {
        self.approval.choices.iter().filter(|choice| choice.kind == ChoiceKind::Other)
    }

    /// What a message says to this question.
    pub(super) fn read(&self, message: &Message) -> Answer {
        if let Some(answered) = data(message) {
            if let Some(id) = answered.approval_id.filter(|id| *id != self.id) {
                return Answer::Expired(id);
            }
            return answered.decision.map_or(Answer::Unclear, |decision| self.word(&decision, answered.reason));
        }
        let text = message.joined_text();
        let text = text.trim();
        let (first, rest) = text.split_once([' ', ',', ':', ';', '.', '\n']).unwrap_or((text, ""));
        match self.word(text, None) {
            Answer::Unclear => {
                let reason = rest.trim_start_matches([' ', ',', ':', ';', '.', '-', '\n']).trim();
                let reason = (!reason.is_empty()).then(|| reason.to_owned());
                match self.word(first, reason) {
                    // Only a no can be explained. "yes, but …" is no plain yes.
                    denied @ Answer::Decided(Decision::Deny { .. }) => denied,
                    plain if rest.trim().is_empty() => plain,
                    _ => Answer::Unclear,
                }
            }
            answer => answer,
        }
    }

    fn word(&self, word: &str, reason: Option<String>) -> Answer {
        if let Some(choice) = self.approval.choices.iter().find(|choice| choice.id == word) {
            return match choice.kind {
                ChoiceKind::AllowAlways => Answer::Always,
                ChoiceKind::AllowOnce => Answer::Decided(Decision::Allow),
                ChoiceKind::RejectOnce | ChoiceKind::RejectAlways => Answer::Decided(Decision::Deny { reason }),
                ChoiceKind::Other => Answer::Decided(Decision::Choose(choice.id.clone())),
            };
        }
        match usual(word) {
            Some(Usual::Allow) => Answer::Decided(Decision::Allow),
            Some(Usual::Always) => Answer::Always,
            Some(Usual::Deny) => Answer::Decided(Decision::Deny { reason }),
            None => Answer::Unclear,
        }
    }
}

enum Usual {
    Allow,
    Always,
    Deny,
}

/// The words people say yes and no with.
fn usual(word: &str) -> Option<Usual> {
    match word.trim_end_matches(['.', '!']).to_lowercase().as_str() {
        "y" | "yes" | "ok" | "okay" | "allow" | "approve" | "approved" | "allow_once" | "allow once" => {
            Some(Usual::Allow)
        }
        "a" | "always" | "allow_always" | "allow always" => Some(Usual::Always),
        "n" | "no" | "deny" | "denied" | "reject" | "rejected" | "reject_once" => Some(Usual::Deny),
        _ => None,
    }
}

/// Whether a message can be nothing but an answer to a question, whichever.
pub(super) fn is_answer(message: &Message) -> bool {
    data(message).is_some() || usual(message.joined_text().trim()).is_some()
}

/// What an answer is told that came to a task while no question was open: twice, or too late. None if the message is no
/// answer but work.
pub(super) fn unasked(message: &Message) -> Option<String> {
    Some(match data(message) {
        Some(Answered { approval_id: Some(id), .. }) => {
            format!("The approval {id} has expired or was answered already; nothing was done.")
        }
        Some(_) => "No question was open when the answer came; nothing was done.".to_owned(),
        None => {
            let text = message.joined_text();
            usual(text.trim())?;
            format!("No question was open when {:?} came; nothing was done.", text.trim())
        }
    })
}

/// Why an answer that names no task begins none. None if it may be work: a plain yes may answer what a program said at
/// the end of an earlier task, unless another one `is_at_work` in the conversation.
pub(super) fn begins_nothing(message: &Message, is_at_work: bool) -> Option<String> {
    match data(message) {
        Some(Answered { approval_id: Some(id), .. }) => Some(format!(
            "the approval {id} is not open here: it has expired, was answered already or is another conversation's"
        )),
        Some(_) => Some("no approval is open here that this could answer: it has expired or was answered".to_owned()),
        None if is_at_work && is_answer(message) => Some(format!(
            "{:?} answers no question that is open in this conversation, and another task of it is at work: say what to do",
            message.joined_text().trim()
        )),
        None => None,
    }
}

/// The answer in a message's data parts.
fn data(message: &Message) -> Option<Answered> {
    message.parts.iter().find_map(|part| match &part.content {
        PartContent::Data(json) => {
            json.read::<Answered>().ok().filter(|read| read.approval_id.is_some() || read.decision.is_some())
        }
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn question(choices: &[(&str, ChoiceKind)]) -> Question {
        let choices = choices.iter().map(|(id, kind)| switchboard_adapters::Choice {
            id: (*id).to_owned(),
            label: (*id).to_owned(),
            kind: *kind,
        });
        let approval = Approval {
            request: "0".to_owned(),
            tool: "Bash".to_owned(),
            input: json!({"command": "cargo test"}),
            prompt: "Bash: cargo test".to_owned(),
            choices: choices.collect(),
        };
        Question::new(approval, Timestamp(1_700_000_000_000))
    }

    fn deny(reason: Option<&str>) -> Answer {
        Answer::Decided(Decision::Deny { reason: reason.map(str::to_owned) })
    }

    #[test]
    fn plain_words_decide_and_only_a_no_can_be_explained() {
        let question = question(&[]);
        let read = |text: &str| question.read(&Message::text(Role::User, text));
        let allow = || Answer::Decided(Decision::Allow);
        for (text, answer) in [
            ("y", allow()),
            (" Yes.\n", allow()),
            ("OK", allow()),
            ("always", Answer::Always),
            ("n", deny(None)),
            ("no, use rg instead", deny(Some("use rg instead"))),
            ("deny: too risky", deny(Some("too risky"))),
            ("yes, but not in /etc", Answer::Unclear),
            ("nothing", Answer::Unclear),
            ("", Answer::Unclear),
            ("please also fix the readme", Answer::Unclear),
        ] {
            assert_eq!(read(text), answer, "{text:?}");
        }
    }

    #[test]
    fn data_is_bound_to_its_question() {
        let question = question(&[]);
        let read = |value: Value| {
            let parts = vec![Part::data(Json::from_serialize(&value).unwrap())];
            question.read(&Message { parts, ..Message::text(Role::User, "") })
        };
        let id = question.id.as_str();
        assert_eq!(read(json!({"approvalId": id, "decision": "allow"})), Answer::Decided(Decision::Allow));
        assert_eq!(read(json!({"decision": "always"})), Answer::Always);
        assert_eq!(read(json!({"approvalId": id, "decision": "deny", "reason": "no"})), deny(Some("no")));
        assert_eq!(read(json!({"approvalId": "old", "decision": "allow"})), Answer::Expired("old".to_owned()));
        assert_eq!(read(json!({"approvalId": id, "decision": "perhaps"})), Answer::Unclear);
        assert_eq!(read(json!({"approvalId": id})), Answer::Unclear);
        assert_eq!(read(json!({"approvalId": 7, "decision": "allow"})), Answer::Unclear);
    }

    #[test]
    fn a_programs_own_choices_are_answers_too() {
        let question = question(&[
            ("proceed_always", ChoiceKind::AllowAlways),
            ("proceed_once", ChoiceKind::AllowOnce),
            ("edit_first", ChoiceKind::Other),
        ]);
        let read = |text: &str| question.read(&Message::text(Role::User, text));
        assert_eq!(read("proceed_always"), Answer::Always);
        assert_eq!(read("proceed_once"), Answer::Decided(Decision::Allow));
        assert_eq!(read("edit_first"), Answer::Decided(Decision::Choose("edit_first".to_owned())));
        assert!(question.message(None).joined_text().contains("It also takes edit_first."));
    }

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

    #[test]
    fn what_is_surely_an_answer() {
        let text = |text: &str| is_answer(&Message::text(Role::User, text));
        assert!(text("y") && text("Always") && text("n"));
        assert!(!text("no, use rg instead") && !text("fix the bug") && !text(""));
        let parts = vec![Part::data(Json::parse(r#"{"approvalId":"x","decision":"allow"}"#).unwrap())];
        let message = Message { parts, ..Message::text(Role::User, "") };
        assert!(is_answer(&message));
        assert!(unasked(&message).unwrap().contains("approval x has expired"));
    }
}
