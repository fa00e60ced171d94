//! The choices that a question offers, as its data says: those of a coding agent's approval, which has an id of its own and
//! takes nothing else, or those of any other question.

use serde::{Deserialize, Serialize};
use switchboard_a2a::{Json, Message};

/// What a yes to a command that is shown in part ends with.
const INCOMPLETE: &str = " incomplete";

/// What a question offers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Choices {
    /// Of an approval: the id that its answer has to name.
    pub(crate) approval: Option<String>,
    pub(crate) offered: Vec<Choice>,
    /// Characters of the command that are not shown.
    pub(crate) omitted: Option<u64>,
}

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Choice {
    pub(crate) id: String,
    pub(crate) label: String,
}

/// The data of a question.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct QuestionData {
    #[serde(default)]
    approval_id: Option<Json>,
    #[serde(default)]
    options: Vec<Json>,
    #[serde(default)]
    omitted_characters: Option<u64>,
}

impl Choices {
    /// Those of a question: of the first of its data that offers any.
    pub(crate) fn of(question: &Message) -> Self {
        let data = question.parts.iter().filter_map(|part| part.as_data()).filter(|data| data.is_object());
        let mut choices = data.filter_map(|data| data.read::<QuestionData>().ok()).map(Self::of_data);
        choices.find(|choices| choices.approval.is_some() || !choices.offered.is_empty()).unwrap_or_default()
    }

    fn of_data(data: QuestionData) -> Self {
        let named = |option: &Json| {
            let text = option.as_text().map(|text| Choice { id: text.clone(), label: text });
            text.or_else(|| option.read().ok())
        };
        Self {
            approval: data.approval_id.and_then(|id| id.as_text()),
            offered: data.options.iter().filter_map(named).collect(),
            omitted: data.omitted_characters,
        }
    }

    /// Whether this one is offered.
    pub(crate) fn has(&self, id: &str) -> bool {
        self.offered.iter().any(|choice| choice.id == id)
    }

    /// The ids, for an error.
    pub(crate) fn names(&self) -> String {
        let names: Vec<&str> = self.offered.iter().map(|choice| choice.id.as_str()).collect();
        if names.is_empty() { "none: the question offers no options".to_owned() } else { names.join(" or ") }
    }

    /// Of an approval: the choice that says yes with this word. A yes to a command that is shown in part says that this was
    /// seen, so nobody gives it by mistake.
    pub(crate) fn yes(&self, word: &str) -> Option<&str> {
        let is_it = |choice: &&Choice| choice.id == word;
        self.offered.iter().find(is_it).map(|choice| choice.id.as_str())
    }

    /// Of an approval: the same of one that is shown in part, with what has to be said beside it.
    pub(crate) fn guarded_yes(&self, word: &str) -> Option<&str> {
        let is_it = |choice: &&Choice| choice.id.strip_suffix(INCOMPLETE) == Some(word);
        self.offered.iter().find(is_it).map(|choice| choice.id.as_str())
    }
}

#[cfg(test)]
mod tests {
    use switchboard_a2a::{Part, Role};

    use super::*;

    fn choices(data: &str) -> Choices {
        let mut message = Message::text(Role::Agent, "which?");
        message.parts.push(Part::data(serde_json::from_str(data).unwrap()));
        Choices::of(&message)
    }

    #[test]
    fn options_are_texts_or_objects_and_what_cannot_be_read_is_no_option() {
        let named = choices(r#"{"options": ["red", {"id": "b", "label": "Blue"}, 7]}"#);
        assert_eq!(named.names(), "red or b");
        assert_eq!((named.approval.as_deref(), named.has("b"), named.has("Blue")), (None, true, false));
        let approval = choices(r#"{"approvalId": "a1", "options": [{"id": "allow incomplete", "label": "Allow"}]}"#);
        assert_eq!((approval.yes("allow"), approval.guarded_yes("allow")), (None, Some("allow incomplete")));
        for none in ["[]", "7", r#"{"options": "red"}"#, r#"{"approvalId": 7}"#] {
            assert_eq!(choices(none), Choices::default(), "{none}");
        }
    }
}
