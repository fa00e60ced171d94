//! A decision as a reviewer gives it, and the message that the agent gets: a coding agent what its program asks for, a gate
//! the words alone, any other agent the words with data beside them.

use serde::Serialize;
use switchboard_a2a::{Json, Message, Part, PartContent, Role};
use switchboard_engine::{CallerId, Verdict};

use super::{Choices, Kind};

/// The verdicts by their names.
pub(crate) const VERDICTS: [(&str, Verdict); 4] = [
    ("approve", Verdict::Approve),
    ("reject", Verdict::Reject),
    ("modify", Verdict::Modify),
    ("answer", Verdict::Answer),
];

pub(crate) fn verdict_name(verdict: Verdict) -> &'static str {
    VERDICTS.iter().find(|(_, known)| *known == verdict).map_or("answer", |(name, _)| name)
}

/// What a reviewer gives.
#[derive(Clone, Debug)]
pub(crate) struct GivenDecision {
    pub(crate) verdict: Verdict,
    /// Why.
    pub(crate) feedback: Option<String>,
    /// The answer, or what is to be done in place of what was asked for.
    pub(crate) parts: Vec<Part>,
    /// One of what the question offers.
    pub(crate) option: Option<String>,
    /// Of an approval: for the rest of the task.
    pub(crate) always: bool,
}

/// What is wrong with a decision: the member, and what would be right.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Unfitting {
    pub(crate) member: &'static str,
    pub(crate) wrong: String,
    pub(crate) right: String,
}

impl Unfitting {
    fn new(member: &'static str, wrong: impl Into<String>, right: impl Into<String>) -> Self {
        Self { member, wrong: wrong.into(), right: right.into() }
    }
}

/// What a coding agent reads as the answer to an approval.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ApprovalAnswer<'a> {
    approval_id: &'a str,
    decision: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
}

/// What any other agent reads beside the words.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct HitlResponse<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    correlation_id: Option<&'a str>,
    decision: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    option: Option<&'a str>,
    feedback: Option<&'a str>,
    decided_by: &'a str,
}

/// Whom the message is for.
pub(crate) struct Addressee<'a> {
    pub(crate) kind: Kind,
    pub(crate) correlation: Option<&'a str>,
    /// Whether it reads data.
    pub(crate) reads_data: bool,
}

impl GivenDecision {
    /// The message that says it to the agent.
    pub(crate) fn message(&self, choices: &Choices, to: &Addressee<'_>, by: &CallerId) -> Result<Message, Unfitting> {
        let mut message = Message::text(Role::User, "");
        message.parts = match (to.kind, &choices.approval) {
            (Kind::Gate, _) => self.for_gate()?,
            (_, Some(approval)) => vec![self.for_approval(choices, approval)?],
            (_, None) => self.for_agent(choices, to, by)?,
        };
        Ok(message)
    }

    fn for_gate(&self) -> Result<Vec<Part>, Unfitting> {
        if self.verdict == Verdict::Answer {
            return Err(Unfitting::new("decision", "is \"answer\"", "approve, reject or modify: it is a gate"));
        }
        if self.option.is_some() {
            return Err(Unfitting::new("option", "is there", "none: it is a gate, which offers no options"));
        }
        self.not_always()?;
        self.words()
    }

    fn for_agent(&self, choices: &Choices, to: &Addressee<'_>, by: &CallerId) -> Result<Vec<Part>, Unfitting> {
        self.not_always()?;
        if let Some(option) = self.option.as_deref().filter(|option| !choices.has(option)) {
            return Err(Unfitting::new("option", format!("is {:?}", shown(option)), choices.names()));
        }
        let mut parts = self.words()?;
        let data = HitlResponse {
            kind: "hitl_response",
            correlation_id: to.correlation,
            decision: verdict_name(self.verdict),
            option: self.option.as_deref(),
            feedback: self.feedback.as_deref(),
            decided_by: by.as_str(),
        };
        if to.reads_data {
            parts.extend(Json::from_serialize(&data).map(Part::data));
        }
        Ok(parts)
    }

    fn not_always(&self) -> Result<(), Unfitting> {
        let right = "false: only approvals of coding agents take it";
        if self.always { Err(Unfitting::new("always", "is true", right)) } else { Ok(()) }
    }

    /// The words: those that are given, else the option, else why, else the verdict.
    fn words(&self) -> Result<Vec<Part>, Unfitting> {
        let is_content = matches!(self.verdict, Verdict::Modify | Verdict::Answer);
        if !self.parts.is_empty() {
            return match is_content {
                true => Ok(self.parts.clone()),
                false => Err(Unfitting::new("text", "is there", "feedback in its place: it says why")),
            };
        }
        let said = match (&self.option, self.verdict, &self.feedback) {
            (Some(option), Verdict::Answer | Verdict::Approve, _) => option.as_str(),
            (_, Verdict::Modify | Verdict::Answer, _) => {
                let verdict = verdict_name(self.verdict);
                return Err(Unfitting::new("text", "is missing", format!("a text, or parts: {verdict} needs one")));
            }
            (_, _, Some(feedback)) => feedback,
            (_, Verdict::Approve, None) => "approved",
            (_, Verdict::Reject, None) => "rejected",
        };
        Ok(vec![Part::text(said)])
    }

    /// The answer to an approval, which is one of its options and never words: words may be read as anything.
    fn for_approval(&self, choices: &Choices, approval: &str) -> Result<Part, Unfitting> {
        if self.parts.iter().any(|part| !matches!(part.content, PartContent::Text(_))) {
            return Err(Unfitting::new("parts", "are there", "option: an approval takes one of its options"));
        }
        let text: String = self.parts.iter().filter_map(Part::as_text).collect();
        let text = Some(text).filter(|text| !text.is_empty());
        let decision = match self.verdict {
            Verdict::Modify => {
                return Err(Unfitting::new("decision", "is \"modify\"", "approve, reject, or answer with an option"));
            }
            Verdict::Reject => {
                self.not_always()?;
                self.option_or(choices, &|id| !is_yes(id))?.unwrap_or("deny").to_owned()
            }
            Verdict::Approve => self.yes(choices)?,
            Verdict::Answer => {
                self.not_always()?;
                let option = self.option.clone().or_else(|| text.clone());
                let is_offered = |option: &String| choices.has(option);
                let wrong = option
                    .as_deref()
                    .map_or_else(|| "is missing".to_owned(), |option| format!("is {:?}", shown(option)));
                option.filter(is_offered).ok_or_else(|| Unfitting::new("option", wrong, choices.names()))?
            }
        };
        let said = text.as_deref().filter(|_| self.verdict != Verdict::Answer);
        let reason = self.feedback.as_deref().or(said);
        let answer = ApprovalAnswer { approval_id: approval, decision: &decision, reason };
        let data = Json::from_serialize(&answer);
        data.map(Part::data).map_err(|error| Unfitting::new("feedback", error.to_string(), "a text"))
    }

    /// The option, if there is one; it has to be offered and to fit the verdict.
    fn option_or<'a>(&'a self, choices: &Choices, fits: &dyn Fn(&str) -> bool) -> Result<Option<&'a str>, Unfitting> {
        let Some(option) = self.option.as_deref() else { return Ok(None) };
        if choices.has(option) && fits(option) {
            return Ok(Some(option));
        }
        let fitting: Vec<&str> =
            choices.offered.iter().map(|choice| choice.id.as_str()).filter(|id| fits(id)).collect();
        let right = if fitting.is_empty() { "none: no option says that".to_owned() } else { fitting.join(" or ") };
        Err(Unfitting::new("option", format!("is {:?}", shown(option)), right))
    }

    /// The option that says yes.
    fn yes(&self, choices: &Choices) -> Result<String, Unfitting> {
        if let Some(option) = self.option_or(choices, &|id| id != "deny")? {
            return match self.always {
                true => Err(Unfitting::new("always", "is there beside option", "one of the two")),
                false => Ok(option.to_owned()),
            };
        }
        let word = if self.always { "always" } else { "allow" };
        if let Some(yes) = choices.yes(word) {
            return Ok(yes.to_owned());
        }
        let right = match choices.guarded_yes(word) {
            Some(guarded) => {
                let omitted = choices.omitted.unwrap_or_default();
                format!("{guarded:?}, which says that {omitted} characters of the command were not shown to you")
            }
            None => choices.names(),
        };
        Err(Unfitting::new("option", "is missing", right))
    }
}

/// Whether an option of an approval says yes in our words.
fn is_yes(id: &str) -> bool {
    ["allow", "always"].iter().any(|word| id == *word || id.strip_suffix(" incomplete") == Some(word))
}

fn shown(text: &str) -> String {
    text.chars().take(80).collect()
}
