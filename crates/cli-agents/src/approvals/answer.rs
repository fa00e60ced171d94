//! Parses a message as an answer to an approval, and tells answers from prompts.
//!
//! A prompt may speak of decisions and approvals too, in words and in data. So a message is taken for an answer only if
//! all of it is one: a file, other data or other members beside it make it a prompt.

use serde::Deserialize;
use serde_json::{Map, Value};
use switchboard_a2a::{Message, PartContent};

/// What may stand between a word and what follows it.
const BETWEEN: [char; 6] = [' ', ',', ':', ';', '.', '\n'];

/// The members that make data an answer: the id of the approval, and the decision.
const ANSWERS: [&str; 4] = ["approvalId", "decision", "option", "optionId"];

/// The word that a yes to a command shown in part must end with, so that it is not given unknowingly.
pub(super) const INCOMPLETE: &str = "incomplete";

pub(super) enum Statement {
    /// All its text, which may be anything.
    Text(String),
    Data(AnswerData),
}

/// The data part of an answer. One with other members is none.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct AnswerData {
    pub(super) approval_id: Option<String>,
    #[serde(alias = "option", alias = "optionId")]
    pub(super) decision: Option<String>,
    pub(super) reason: Option<String>,
}

/// A message that can be nothing but an answer.
pub(super) enum CertainAnswer {
    Named(String),
    /// Data that names no approval.
    Data,
    /// A word that people say yes or no with.
    Word(String),
}

/// What a plain word decides.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Allow,
    Always,
    Deny,
}

impl Statement {
    pub(super) fn approval_id(&self) -> Option<&str> {
        match self {
            Self::Text(_) => None,
            Self::Data(answered) => answered.approval_id.as_deref(),
        }
    }
}

/// All statements of a message, or none if it holds something that is no part of an answer.
pub(super) fn statements(message: &Message) -> Option<Vec<Statement>> {
    let mut statements = Vec::new();
    for part in &message.parts {
        match &part.content {
            PartContent::Text(_) => {}
            PartContent::Data(json) => {
                // A list of texts would be read as the members in their order.
                let answered: AnswerData = json.is_object().then(|| json.read().ok())??;
                if answered.approval_id.is_none() && answered.decision.is_none() {
                    return None;
                }
                statements.push(Statement::Data(answered));
            }
            PartContent::Raw(_) | PartContent::Url(_) => return None,
        }
    }
    let text = message.joined_text();
    if !text.trim().is_empty() {
        statements.push(Statement::Text(text.trim().to_owned()));
    }
    Some(statements)
}

/// Whether a message can be nothing but an answer. Beside text, data that names no approval counts as the word in it.
pub(super) fn certain_answer(message: &Message) -> Option<CertainAnswer> {
    let statements = statements(message)?;
    let has_text = statements.iter().any(|statement| matches!(statement, Statement::Text(_)));
    let (mut named, mut data, mut word) = (None, None, None);
    for statement in statements {
        match statement {
            Statement::Data(AnswerData { approval_id: Some(id), .. }) => {
                named = named.or(Some(CertainAnswer::Named(is_our_id(&id).then_some(id)?)));
            }
            Statement::Data(AnswerData { decision, .. }) => {
                if has_text {
                    verdict_of_words(&decision?)?;
                }
                data = Some(CertainAnswer::Data);
            }
            Statement::Text(text) => {
                verdict_of_words(&text)?;
                word = Some(CertainAnswer::Word(text));
            }
        }
    }
    named.or(data).or(word)
}

/// Whether a message is data alone and mentions an approval or a decision: without text it is no prompt either.
pub(super) fn mentions_approval(message: &Message) -> bool {
    let is_alone = message.parts.iter().all(|part| match &part.content {
        PartContent::Text(text) => text.trim().is_empty(),
        PartContent::Data(_) => true,
        PartContent::Raw(_) | PartContent::Url(_) => false,
    });
    let speaks = |members: Map<String, Value>| ANSWERS.iter().any(|member| members.contains_key(*member));
    is_alone
        && message.parts.iter().any(|part| match &part.content {
            PartContent::Data(json) => json.read().is_ok_and(speaks),
            _ => false,
        })
}

/// Whether an id has the form of ours: other systems have approval ids too.
fn is_our_id(id: &str) -> bool {
    uuid::Uuid::try_parse(id).is_ok_and(|uuid| uuid.get_version_num() == 4 && uuid.to_string() == id)
}

/// The words people say yes and no with.
pub(super) fn verdict(word: &str) -> Option<Verdict> {
    match word.trim_end_matches(['.', '!', ',', ':', ';']).to_lowercase().as_str() {
        "y" | "yes" | "ok" | "okay" | "allow" | "approve" | "approved" | "allow_once" | "allow once" => {
            Some(Verdict::Allow)
        }
        "a" | "always" | "allow_always" | "allow always" => Some(Verdict::Always),
        "n" | "no" | "deny" | "denied" | "reject" | "rejected" | "reject_once" => Some(Verdict::Deny),
        _ => None,
    }
}

/// The same with or without [`INCOMPLETE`].
fn verdict_of_words(words: &str) -> Option<Verdict> {
    verdict(words).or_else(|| verdict(strip_incomplete(words)?))
}

/// Whether a text decides something by itself, so that no choice of a program can have it for its id.
pub(super) fn is_our_word(text: &str) -> bool {
    verdict_with_reason(text).is_some() || verdict_of_words(text).is_some()
}

/// The words before [`INCOMPLETE`], if an answer ends with it.
pub(super) fn strip_incomplete(words: &str) -> Option<&str> {
    let (rest, last) = words.rsplit_once(' ')?;
    last.trim_end_matches('.').eq_ignore_ascii_case(INCOMPLETE).then(|| rest.trim_end())
}

/// The verdict of a text, with its reason. Only a no can have one: "yes, but …" is no plain yes.
pub(super) fn verdict_with_reason(text: &str) -> Option<(Verdict, Option<&str>)> {
    if let Some(word) = verdict(text) {
        return Some((word, None));
    }
    let (first, rest) = text.split_once(BETWEEN)?;
    let reason = rest.trim_start_matches(|between| between == '-' || BETWEEN.contains(&between)).trim();
    let reason = (!reason.is_empty()).then_some(reason);
    verdict(first).filter(|word| *word == Verdict::Deny || reason.is_none()).map(|word| (word, reason))
}
