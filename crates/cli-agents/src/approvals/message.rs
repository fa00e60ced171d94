//! The message of an approval, in words for people and as data for programs.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::Value;
use switchboard_a2a::{Json, Message, Part, Role};

use super::sanitize::sanitize;
use super::tool_call::{Excerpt, ToolCallText, excerpt, framed};
use super::{PendingApproval, answer};
use crate::adapters::{Choice, ChoiceKind, cut};

/// Input of a tool up to this many bytes of JSON is shown whole.
const INPUT_BYTES: usize = 256 << 10;
/// Of longer input the beginning is shown.
const INPUT_CHARACTERS: usize = 4_000;
/// The longest label of an answer, and the longest name of a tool, that is shown whole.
const LABEL_CHARACTERS: usize = 1_000;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ApprovalData<'a> {
    approval_id: &'a str,
    tool: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    input: Option<&'a Value>,
    /// The beginning of an input that is too long to show.
    #[serde(skip_serializing_if = "Option::is_none")]
    input_beginning: Option<String>,
    /// How much of the command the text leaves out, if it is too long to show.
    #[serde(skip_serializing_if = "Option::is_none")]
    omitted_characters: Option<usize>,
    options: Vec<OfferedOption<'a>>,
    expires_at: String,
}

#[derive(Serialize)]
struct OfferedOption<'a> {
    id: Cow<'a, str>,
    label: &'a str,
}

pub(super) struct OwnChoice<'a> {
    /// What it is offered under, and answered with.
    pub(super) id: Cow<'a, str>,
    pub(super) choice: &'a Choice,
}

/// The program's own texts, sanitized and shortened for people.
struct Excerpts {
    /// The prompt and what the tool is called with.
    call: ToolCallText,
    tool: String,
    /// Those of the program's own answers, in their order.
    labels: Vec<String>,
    /// Characters that are left out of all these.
    omitted: usize,
}

impl PendingApproval {
    /// The message of the question. `note` says why an earlier answer was not taken.
    pub(crate) fn message(&self, note: Option<&str>) -> Message {
        let approval = &self.approval;
        let Excerpts { call, tool, labels, omitted } = self.shown();
        let mut text = note.map(|note| format!("{}\n", framed(&sanitize(note)))).unwrap_or_default();
        text.push_str(&format!("Approve: {}?\n", call.prompt));
        for member in &call.members {
            text.push_str(&format!("  {member}\n"));
        }
        let is_incomplete = omitted > 0;
        let (yes, always) = (guarded(is_incomplete, "y", "allow"), guarded(is_incomplete, "always", "always"));
        if is_incomplete {
            text.push_str(&format!(
                "This is not all of it: {omitted} characters are left out, so a plain y is not taken. "
            ));
        }
        let no = if approval.takes_reason { "n, with a reason if you like" } else { "n" };
        text.push_str(&match approval.no_plain_yes {
            true => format!("Answer {no}; a plain yes is not taken here."),
            false => format!("Answer {yes} (this once), {always} (every {tool} of this task) or {no}."),
        });
        let own = self.own_choices().into_iter().zip(labels).map(|(own, label)| {
            let id = guarded(is_incomplete, &own.id, &own.id).into_owned();
            if id.eq_ignore_ascii_case(&label) { id } else { format!("{id} ({label})") }
        });
        let own: Vec<String> = own.collect();
        if !own.is_empty() {
            text.push_str(&format!(" It also takes {}.", own.join(", ")));
        }
        let mut message = Message::text(Role::Agent, text);
        message.parts.extend(Json::from_serialize(&self.data(omitted)).map(Part::data));
        message
    }

    /// Whether something is shown in part, so that a yes has to say that this was seen.
    pub(super) fn is_incomplete(&self) -> bool {
        self.shown().omitted > 0
    }

    fn shown(&self) -> Excerpts {
        let short = |text: &str| excerpt(text, LABEL_CHARACTERS);
        let (call, tool) = (ToolCallText::new(&self.approval), short(&self.approval.tool));
        let labels: Vec<Excerpt> = self.own_choices().iter().map(|own| short(&own.choice.label)).collect();
        let omitted = call.omitted + tool.omitted + labels.iter().map(|label| label.omitted).sum::<usize>();
        Excerpts { call, tool: tool.text, labels: labels.into_iter().map(|label| label.text).collect(), omitted }
    }

    fn data(&self, omitted: usize) -> ApprovalData<'_> {
        let input = &self.approval.input;
        let written = input.to_string();
        let is_short = written.len() <= INPUT_BYTES;
        let usual = [("allow", "Allow once"), ("always", "Allow for this task"), ("deny", "Deny")];
        let usual = usual.into_iter().filter(|(id, _)| *id == "deny" || !self.approval.no_plain_yes);
        let usual = usual.map(|(id, label)| OfferedOption {
            id: if id == "deny" { id.into() } else { guarded(omitted > 0, id, id) },
            label,
        });
        let own = self.own_choices().into_iter().map(|OwnChoice { id, choice }| OfferedOption {
            id: guarded(omitted > 0, &id, &id).into_owned().into(),
            label: &choice.label,
        });
        ApprovalData {
            approval_id: &self.id,
            tool: &self.approval.tool,
            input: is_short.then_some(input),
            input_beginning: (!is_short).then(|| cut(&written, INPUT_CHARACTERS).into_owned()),
            omitted_characters: Some(omitted).filter(|omitted| *omitted > 0),
            options: usual.chain(own).collect(),
            expires_at: self.expires_at.to_string(),
        }
    }

    /// What the program offers beyond yes and no. Our words keep their meaning, so a choice with such an id is offered
    /// under another; so is one whose id would not be typed as it is shown, and could become one of our words.
    pub(super) fn own_choices(&self) -> Vec<OwnChoice<'_>> {
        let choices = &self.approval.choices;
        let ids: BTreeSet<&str> = choices.iter().map(|choice| choice.id.as_str()).collect();
        let mut seen = BTreeSet::new();
        let own = choices.iter().filter(|choice| choice.kind == ChoiceKind::Other);
        let own = own.filter(|choice| seen.insert(choice.id.as_str())).enumerate().map(|(at, choice)| {
            let id = choice.id.as_str();
            let mut offered = match is_shown_as_typed(id) {
                true if !answer::is_our_word(id) => Cow::Borrowed(id),
                true => Cow::Owned(format!("option-{id}")),
                false => Cow::Owned(format!("option-{}", at + 1)),
            };
            while offered != id && ids.contains(&*offered) {
                offered = Cow::Owned(format!("option-{offered}"));
            }
            OwnChoice { id: offered, choice }
        });
        own.collect()
    }
}

/// Whether an id can be typed as it is shown. Answers are trimmed, and terminals show no invisible characters.
fn is_shown_as_typed(id: &str) -> bool {
    !id.is_empty() && !id.contains('\n') && id.trim() == id && sanitize(id) == id
}

/// What to type for a yes: `plain`, or more than that where not all is shown.
fn guarded<'a>(is_incomplete: bool, plain: &'a str, word: &str) -> Cow<'a, str> {
    match is_incomplete {
        true => format!("{word} {}", answer::INCOMPLETE).into(),
        false => plain.into(),
    }
}
