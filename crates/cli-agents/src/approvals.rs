//! Approvals: a program's question about a tool call becomes the task's question, and the caller's message its answer.
//!
//! Every approval has its own id. An answer that names the id counts only for that approval: one that comes too late,
//! twice, or after a restart decides nothing. An answer in plain words names no id and belongs to the approval that was
//! open when it came, by the order of the log. If none was open, it decides nothing, also not a later one, and is no
//! prompt.

mod answer;
mod message;
mod sanitize;
mod tool_call;

use switchboard_a2a::{Message, Timestamp};

use crate::adapters::{Approval, ChoiceKind, Decision};
use answer::{AnswerData, CertainAnswer, Statement, Verdict, verdict};

/// The note on an answer that is neither yes nor no.
const NEITHER: &str = "That was neither a yes nor a no.";
/// … that contradicts itself.
const DIVIDED: &str = "That said several things that do not agree.";
/// … with other parts beside it.
const MORE: &str = "That was more than an answer, which is words alone, or data with approvalId, decision and reason.";
/// … that is a yes where the program takes no plain yes.
const NO_YES: &str = "A plain yes is not taken here.";
/// … that is a plain yes to a command that is shown in part.
const NOT_WHOLE: &str = "The command is not shown whole, so a plain yes is not taken.";

/// The note on a denial whose reason the program does not take.
pub(super) const LOST_REASON: &str = "The reason was not passed on: this program takes only a yes or a no.";

/// An approval that waits for its answer until the question timeout.
pub(super) struct PendingApproval {
    /// The id that answers name.
    pub(super) id: String,
    pub(super) approval: Approval,
    /// The question timeout.
    pub(super) expires_at: Timestamp,
}

/// A message read as the answer to an approval.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// A decision.
    Decided(Decision),
    /// Allow it, and every use of this tool for the rest of the task.
    Always,
    /// It names another approval, which is closed.
    Expired(String),
    /// It decides nothing, for this reason.
    Unclear(&'static str),
}

impl PendingApproval {
    /// An approval under a new id.
    pub(super) fn new(approval: Approval, expires_at: Timestamp) -> Self {
        Self { id: uuid::Uuid::new_v4().to_string(), approval, expires_at }
    }

    /// Reads a message as the answer to this approval.
    pub(super) fn read(&self, message: &Message) -> Answer {
        let Some(statements) = answer::statements(message) else { return Answer::Unclear(MORE) };
        if let Some(id) = statements.iter().filter_map(Statement::approval_id).find(|id| *id != self.id) {
            return Answer::Expired(id.to_owned());
        }
        let answers = statements.into_iter().map(|statement| match statement {
            Statement::Text(text) => self.guard(&text, |text| self.text(text)),
            Statement::Data(AnswerData { decision: Some(decision), reason, .. }) => {
                self.guard(&decision, |decision| self.word(decision, reason.clone()))
            }
            Statement::Data(_) => Answer::Unclear(NEITHER),
        });
        answers.reduce(Answer::agreed).unwrap_or(Answer::Unclear(NEITHER))
    }

    /// Reads an answer; a yes to a command that is shown in part must say that this was seen.
    fn guard(&self, words: &str, read: impl Fn(&str) -> Answer) -> Answer {
        match read(words) {
            answer if !self.is_incomplete() => answer,
            no @ Answer::Decided(Decision::Deny { .. }) => no,
            answer => match (answer::strip_incomplete(words), answer) {
                (Some(words), _) => read(words),
                (None, unclear @ Answer::Unclear(_)) => unclear,
                (None, _) => Answer::Unclear(NOT_WHOLE),
            },
        }
    }

    fn text(&self, text: &str) -> Answer {
        match answer::verdict_with_reason(text) {
            Some((Verdict::Deny, Some(reason))) if verdict(reason).is_some_and(|word| word != Verdict::Deny) => {
                Answer::Unclear(DIVIDED)
            }
            Some((word, reason)) => self.verdict(word, reason.map(str::to_owned)),
            None => match self.choice(text, None) {
                Answer::Unclear(_) => self.choice(text.trim_end_matches(['.', ',', ':', ';', '!']), None),
                answer => answer,
            },
        }
    }

    fn word(&self, word: &str, reason: Option<String>) -> Answer {
        match verdict(word) {
            Some(word) => self.verdict(word, reason),
            None => self.choice(word, reason),
        }
    }

    /// One of the program's own answers, by its id.
    fn choice(&self, id: &str, reason: Option<String>) -> Answer {
        if let Some(own) = self.own_choices().iter().find(|own| own.id == id) {
            return Answer::Decided(Decision::Choose(own.choice.id.clone()));
        }
        let kind = self.approval.choices.iter().find(|choice| choice.id == id).map(|choice| choice.kind);
        match kind {
            Some(ChoiceKind::AllowAlways) => self.verdict(Verdict::Always, None),
            Some(ChoiceKind::AllowOnce) => self.verdict(Verdict::Allow, None),
            Some(ChoiceKind::RejectOnce | ChoiceKind::RejectAlways) => self.verdict(Verdict::Deny, reason),
            // Its id reads as one of our words, so it is offered under another id.
            Some(ChoiceKind::Other) | None => Answer::Unclear(NEITHER),
        }
    }

    fn verdict(&self, word: Verdict, reason: Option<String>) -> Answer {
        match word {
            Verdict::Allow | Verdict::Always if self.approval.no_plain_yes => Answer::Unclear(NO_YES),
            Verdict::Allow => Answer::Decided(Decision::Allow),
            Verdict::Always => Answer::Always,
            Verdict::Deny => Answer::Decided(Decision::Deny { reason }),
        }
    }
}

impl Answer {
    /// Combines two statements of one message, which must agree.
    fn agreed(self, other: Self) -> Self {
        match (self, other) {
            (Self::Decided(Decision::Deny { reason }), Self::Decided(Decision::Deny { reason: other })) => {
                Self::Decided(Decision::Deny { reason: reason.or(other) })
            }
            (unclear @ Self::Unclear(_), _) | (_, unclear @ Self::Unclear(_)) => unclear,
            (answer, other) if answer == other => answer,
            _ => Self::Unclear(DIVIDED),
        }
    }
}

/// Whether a message that names only its conversation answers the approval that is open there. Data must name the
/// approval: without its id, it may be part of a prompt.
pub(super) fn is_answer(message: &Message) -> bool {
    matches!(answer::certain_answer(message), Some(CertainAnswer::Named(_) | CertainAnswer::Word(_)))
}

/// The note on an answer that came to a task while no approval was open: twice, or too late. None if the message is a
/// prompt.
pub(super) fn unexpected_answer(message: &Message) -> Option<String> {
    let no_question = "No question was open when the answer came; nothing was done.";
    match answer::certain_answer(message) {
        Some(CertainAnswer::Named(id)) => {
            Some(format!("The approval {id} has expired or was answered already; nothing was done."))
        }
        Some(CertainAnswer::Data) => Some(no_question.to_owned()),
        Some(CertainAnswer::Word(word)) => Some(format!("No question was open when {word:?} came; nothing was done.")),
        None => answer::mentions_approval(message).then(|| no_question.to_owned()),
    }
}

/// Why an answer that names no task starts none. None if it may be a prompt: a plain yes may answer what a program said
/// at the end of an earlier task, unless another one `is_at_work` in the conversation.
pub(super) fn refuse_as_first_message(message: &Message, is_at_work: bool) -> Option<String> {
    match answer::certain_answer(message)? {
        CertainAnswer::Named(id) => Some(format!(
            "the approval {id} is not open here: it has expired, was answered already or is another conversation's"
        )),
        CertainAnswer::Data => Some(
            "an answer as data has to say what it answers: add the approvalId of the question, or the taskId of its task"
                .to_owned(),
        ),
        CertainAnswer::Word(word) => is_at_work.then(|| {
            format!(
                "{word:?} answers no question that is open in this conversation, and another task of it is at work: \
                 say what to do"
            )
        }),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use switchboard_a2a::{Json, Part, PartContent, Role};

    use super::*;

    pub(super) fn question(choices: &[(&str, ChoiceKind)]) -> PendingApproval {
        let choices = choices.iter().map(|(id, kind)| crate::adapters::Choice {
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
            no_plain_yes: false,
            takes_reason: true,
        };
        PendingApproval::new(approval, Timestamp(1_700_000_000_000))
    }

    fn data(value: &Value) -> Part {
        Part::data(Json::from_serialize(value).unwrap())
    }

    fn message(parts: Vec<Part>) -> Message {
        Message { parts, ..Message::text(Role::User, "") }
    }

    fn options(question: &PendingApproval) -> Value {
        serde_json::to_value(question.message(None)).unwrap()["parts"][1]["data"]["options"].clone()
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
            ("yes, but not in /etc", Answer::Unclear(NEITHER)),
            ("nothing", Answer::Unclear(NEITHER)),
            ("", Answer::Unclear(NEITHER)),
            ("please also fix the readme", Answer::Unclear(NEITHER)),
        ] {
            assert_eq!(read(text), answer, "{text:?}");
        }
    }

    #[test]
    fn data_is_bound_to_its_question() {
        let question = question(&[]);
        let read = |value: Value| question.read(&message(vec![data(&value)]));
        let id = question.id.as_str();
        assert_eq!(read(json!({"approvalId": id, "decision": "allow"})), Answer::Decided(Decision::Allow));
        assert_eq!(read(json!({"decision": "always"})), Answer::Always);
        assert_eq!(read(json!({"approvalId": id, "decision": "deny", "reason": "no"})), deny(Some("no")));
        assert_eq!(read(json!({"approvalId": "old", "decision": "allow"})), Answer::Expired("old".to_owned()));
        assert_eq!(read(json!({"approvalId": id, "decision": "perhaps"})), Answer::Unclear(NEITHER));
        assert_eq!(read(json!({"approvalId": id})), Answer::Unclear(NEITHER));
        for other in [
            json!({"approvalId": 7, "decision": "allow"}),
            json!({"approvalId": id, "decision": "allow", "comment": "fine"}),
            json!({"decision": "allow", "option": "deny"}),
            json!([id, "allow", "because"]),
            json!({"reason": "because"}),
        ] {
            assert_eq!(read(other.clone()), Answer::Unclear(MORE), "{other}");
        }
    }

    #[test]
    fn what_does_not_agree_decides_nothing() {
        let question = question(&[]);
        let id = question.id.as_str();
        let named = |decision: &str| data(&json!({"approvalId": id, "decision": decision}));
        let (text, unnamed) = (Part::text, |decision: &str| data(&json!({"decision": decision})));
        let read = |parts: Vec<Part>| question.read(&message(parts));
        assert_eq!(read(vec![text("y"), named("allow")]), Answer::Decided(Decision::Allow));
        assert_eq!(read(vec![unnamed("always"), named("always"), text(" ")]), Answer::Always);
        assert_eq!(read(vec![named("deny"), text("no, use rg")]), deny(Some("use rg")));
        for divided in [
            vec![text("n"), named("allow")],
            vec![text("y"), named("deny")],
            vec![unnamed("deny"), unnamed("allow")],
            vec![named("allow"), text("always")],
            vec![text("n"), text("y")],
            vec![text("no, yes")],
        ] {
            assert_eq!(read(divided.clone()), Answer::Unclear(DIVIDED), "{divided:?}");
        }
        let other = || data(&json!({"approvalId": "x", "decision": "deny"}));
        assert_eq!(read(vec![unnamed("allow"), other()]), Answer::Expired("x".to_owned()));
        assert_eq!(read(vec![other(), named("deny")]), Answer::Expired("x".to_owned()));
        assert_eq!(read(vec![named("deny"), other()]), Answer::Expired("x".to_owned()));
        for unclear in ["Write this decision down", "yes, but not in /etc"] {
            assert_eq!(read(vec![text(unclear), named("allow")]), Answer::Unclear(NEITHER), "{unclear}");
        }
        let file = Part::new(PartContent::Raw(b"x".to_vec()));
        assert_eq!(read(vec![text("always"), file]), Answer::Unclear(MORE));
        assert_eq!(read(vec![text("y"), data(&json!({"title": "use SQLite"}))]), Answer::Unclear(MORE));
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
    fn our_words_mean_what_they_mean_whatever_a_program_calls_its_answers() {
        let question = question(&[
            ("deny", ChoiceKind::Other),
            ("option-deny", ChoiceKind::Other),
            ("deny", ChoiceKind::Other),
            ("No, thanks", ChoiceKind::Other),
            ("n", ChoiceKind::AllowOnce),
            ("y", ChoiceKind::RejectOnce),
            ("always", ChoiceKind::RejectAlways),
            ("no way", ChoiceKind::AllowAlways),
        ]);
        let options = options(&question);
        let offered = |id: &str, label: &str| json!({"id": id, "label": label});
        let own = [
            offered("option-option-deny", "deny"),
            offered("option-deny", "option-deny"),
            offered("option-No, thanks", "No, thanks"),
        ];
        assert_eq!(options.as_array().unwrap()[3..], own);
        let asked = question.message(None).joined_text();
        let expected = "It also takes option-option-deny (deny), option-deny, option-No, thanks (No, thanks).";
        assert!(asked.ends_with(expected), "{asked}");
        let text = |text: &str| question.read(&message(vec![Part::text(text)]));
        let data = |decision: &str| question.read(&message(vec![data(&json!({"decision": decision}))]));
        let chosen = |id: &str| Answer::Decided(Decision::Choose(id.to_owned()));
        for (word, answer) in [
            ("deny", deny(None)),
            ("n", deny(None)),
            ("y", Answer::Decided(Decision::Allow)),
            ("always", Answer::Always),
            ("option-option-deny", chosen("deny")),
            ("option-deny", chosen("option-deny")),
            ("option-No, thanks", chosen("No, thanks")),
        ] {
            assert_eq!(text(word), answer, "{word}");
            assert_eq!(data(word), answer, "{word} as data");
        }
        assert_eq!((text("No, thanks"), text("no way")), (deny(Some("thanks")), deny(Some("way"))));
        assert_eq!(data("No, thanks"), Answer::Unclear(NEITHER));
    }

    #[test]
    fn a_yes_that_cannot_be_given_is_not_offered_and_decides_nothing() {
        let mut question = question(&[("aa", ChoiceKind::Other), ("ro", ChoiceKind::RejectOnce)]);
        question.approval.no_plain_yes = true;
        "Always\u{1b}[0m".clone_into(&mut question.approval.choices[0].label);
        let asked = question.message(None).joined_text();
        let expected = "Answer n, with a reason if you like; a plain yes is not taken here. \
                        It also takes aa (Always\\u{1b}[0m).";
        assert_eq!(asked.lines().last(), Some(expected));
        let options = options(&question);
        let ids: Vec<&str> = options.as_array().unwrap().iter().map(|option| option["id"].as_str().unwrap()).collect();
        assert_eq!(ids, ["deny", "aa"]);
        let read = |text: &str| question.read(&message(vec![Part::text(text)]));
        for yes in ["y", "always", "allow"] {
            assert_eq!(read(yes), Answer::Unclear(NO_YES), "{yes}");
            assert_eq!(question.read(&message(vec![data(&json!({"decision": yes}))])), Answer::Unclear(NO_YES));
        }
        assert_eq!(read("aa"), Answer::Decided(Decision::Choose("aa".to_owned())));
        assert_eq!((read("ro"), read("no, not for ever")), (deny(None), deny(Some("not for ever"))));
    }

    #[test]
    fn a_command_that_is_not_shown_whole_takes_no_plain_yes() {
        let mut question = question(&[("edit_first", ChoiceKind::Other), ("once", ChoiceKind::AllowOnce)]);
        question.approval.input = Value::Null;
        question.approval.prompt = "x".repeat(tool_call::PROMPT_CHARACTERS + 1);
        let allow = || Answer::Decided(Decision::Allow);
        let edit = || Answer::Decided(Decision::Choose("edit_first".to_owned()));
        for (words, answer) in [
            ("y", Answer::Unclear(NOT_WHOLE)),
            ("allow", Answer::Unclear(NOT_WHOLE)),
            ("always", Answer::Unclear(NOT_WHOLE)),
            ("once", Answer::Unclear(NOT_WHOLE)),
            ("edit_first", Answer::Unclear(NOT_WHOLE)),
            ("incomplete", Answer::Unclear(NEITHER)),
            ("allow incomplete", allow()),
            ("Yes  Incomplete", allow()),
            ("once incomplete", allow()),
            ("always incomplete", Answer::Always),
            ("edit_first incomplete", edit()),
            ("n", deny(None)),
            ("deny", deny(None)),
        ] {
            assert_eq!(question.read(&message(vec![Part::text(words)])), answer, "{words}");
            assert_eq!(question.read(&message(vec![data(&json!({"decision": words}))])), answer, "{words} as data");
        }
        let reason = "no, that is incomplete";
        assert_eq!(question.read(&message(vec![Part::text(reason)])), deny(Some("that is incomplete")));
        question.approval.prompt.pop();
        assert_eq!(question.read(&message(vec![Part::text("y")])), allow());
        assert_eq!(question.read(&message(vec![Part::text("allow incomplete")])), Answer::Unclear(NEITHER));
        assert!(is_answer(&message(vec![Part::text("allow incomplete")])));
    }

    #[test]
    fn what_is_surely_an_answer() {
        let id = "699543ce-b046-4ec7-96a5-dca4bff40eb5";
        let text = |text: &str| message(vec![Part::text(text)]);
        let both = |text: &str, value: Value| message(vec![Part::text(text), data(&value)]);
        let named = || json!({"approvalId": id, "decision": "later"});
        for answer in [text("y"), text("Always"), text("n"), both("", named()), both("ok", named())] {
            assert!(is_answer(&answer), "{answer:?}");
            assert!(
                unexpected_answer(&answer).is_some() && refuse_as_first_message(&answer, true).is_some(),
                "{answer:?}"
            );
        }
        assert!(unexpected_answer(&both("", named())).unwrap().contains(&format!("approval {id} has expired")));
        for work in [
            text("no, use rg instead"),
            text("fix the bug"),
            text(""),
            both("fix the bug", named()),
            both("y", json!({"approvalId": "PO-1234", "decision": "approve"})),
            both("y", json!({"approvalId": id, "decision": "allow", "title": "use SQLite"})),
            both("ok", json!({"decision": "deploy"})),
            both("do what it says", json!({"decision": "allow"})),
            message(vec![Part::text("ok"), Part::new(PartContent::Raw(b"x".to_vec()))]),
        ] {
            assert!(!is_answer(&work) && unexpected_answer(&work).is_none(), "{work:?}");
            assert!(refuse_as_first_message(&work, true).is_none(), "{work:?}");
        }
        // Too little for a question that is not named by its task, and yet no work.
        for unnamed in [both("", json!({"decision": "later"})), both("y", json!({"decision": "allow"}))] {
            assert!(!is_answer(&unnamed), "{unnamed:?}");
            assert!(
                unexpected_answer(&unnamed).is_some() && refuse_as_first_message(&unnamed, false).is_some(),
                "{unnamed:?}"
            );
        }
        for mute in [json!({"approvalId": "PO-1234"}), json!({"optionId": "later", "title": "use SQLite"})] {
            let mute = both(" ", mute);
            assert!(
                !is_answer(&mute)
                    && unexpected_answer(&mute).is_some()
                    && refuse_as_first_message(&mute, true).is_none(),
                "{mute:?}"
            );
        }
    }
}
