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
    Decided(Decision),
    /// Allow it, and every use of this tool for the rest of the task.
    Always,
    /// It names another approval, which is closed.
    Expired(String),
    /// It decides nothing, for this reason.
    Unclear(&'static str),
}

impl PendingApproval {
    pub(super) fn new(approval: Approval, expires_at: Timestamp) -> Self {
        Self { id: uuid::Uuid::new_v4().to_string(), approval, expires_at }
    }

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
/// at the end of an earlier task, unless another one `is_running` in the conversation.
pub(super) fn refuse_as_first_message(message: &Message, is_running: bool) -> Option<String> {
    match answer::certain_answer(message)? {
        CertainAnswer::Named(id) => Some(format!(
            "the approval {id} is not open here: it has expired, was answered already or is another conversation's"
        )),
        CertainAnswer::Data => Some(
            "an answer as data has to say what it answers: add the approvalId of the question, or the taskId of its task"
                .to_owned(),
        ),
        CertainAnswer::Word(word) => is_running.then(|| {
            format!(
                "{word:?} answers no question that is open in this conversation, and another task of it is running: \
                 say what to do"
            )
        }),
    }
}
