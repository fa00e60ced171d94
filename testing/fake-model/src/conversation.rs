//! A request as every wire means it: who said what so far, and which tools are offered. Agents put texts of their own
//! around what the user said; those are told apart here, because the model must answer the user.

use crate::directive;

/// One message.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Turn {
    /// The texts of one message of the user's side.
    User(Vec<String>),
    /// What the model said or called.
    Assistant,
    /// What a tool answered.
    Tool(String),
}

/// What a request asks.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Conversation {
    pub(crate) model: String,
    pub(crate) turns: Vec<Turn>,
    /// The names of the tools the model may call.
    pub(crate) tools: Vec<String>,
    /// Whether the answer is to come as events rather than whole.
    pub(crate) is_streamed: bool,
    /// Whether the agent asks something for itself, such as a title.
    pub(crate) is_side: bool,
    /// Whether the answer must be JSON.
    pub(crate) wants_json: bool,
}

/// What the user wants now.
#[derive(Debug, PartialEq)]
pub(crate) struct Prompt<'a> {
    pub(crate) text: &'a str,
    /// What the tools answered since.
    pub(crate) results: Vec<&'a str>,
}

impl Conversation {
    /// What the user said last, which is not always what came last.
    pub(crate) fn prompt(&self) -> Prompt<'_> {
        let mut results = Vec::new();
        for turn in self.turns.iter().rev() {
            match turn {
                Turn::Tool(result) => results.push(result.as_str()),
                Turn::Assistant => {}
                Turn::User(texts) => {
                    let Some(text) = said(texts) else { continue };
                    results.reverse();
                    return Prompt { text, results };
                }
            }
        }
        Prompt { text: "", results: Vec::new() }
    }

    /// Everything the user said, oldest first.
    pub(crate) fn prompts(&self) -> impl Iterator<Item = &str> {
        self.turns.iter().filter_map(|turn| match turn {
            Turn::User(texts) => said(texts),
            Turn::Assistant | Turn::Tool(_) => None,
        })
    }
}

/// What the user said in one message, if anything: the last text with a directive, or the last that is the user's own.
fn said(texts: &[String]) -> Option<&str> {
    let own = || texts.iter().map(String::as_str).filter(|text| !is_context(text));
    own().rfind(|text| !directive::read(text).directives.is_empty()).or_else(|| own().next_back())
}

/// Whether an agent added this text: all of them open such texts with a tag, `<system-reminder>` and the like.
fn is_context(text: &str) -> bool {
    let Some(opened) = text.trim_start().strip_prefix('<') else { return text.trim().is_empty() };
    let name = opened.split(['>', ' ']).next().unwrap_or_default();
    opened.contains('>')
        && !name.is_empty()
        && name.chars().all(|letter| letter.is_ascii_lowercase() || "-_".contains(letter))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(texts: &[&str]) -> Turn {
        Turn::User(texts.iter().map(|text| (*text).to_owned()).collect())
    }

    fn conversation(turns: Vec<Turn>) -> Conversation {
        Conversation { turns, ..Conversation::default() }
    }

    #[test]
    fn the_prompt_is_what_the_user_said_last_and_not_what_the_agent_added() {
        let asked = conversation(vec![
            user(&["<environment_context>\n<cwd>/tmp</cwd>"]),
            user(&["<system-reminder>\nx", "Do [[bash ls]]", "<system-reminder>later</system-reminder>"]),
            Turn::Assistant,
            Turn::Tool("one".to_owned()),
            Turn::Assistant,
            Turn::Tool("two".to_owned()),
            user(&["<system-reminder>after a tool"]),
        ]);
        assert_eq!(asked.prompt(), Prompt { text: "Do [[bash ls]]", results: vec!["one", "two"] });
        assert_eq!(asked.prompts().collect::<Vec<_>>(), ["Do [[bash ls]]"]);
    }

    #[test]
    fn a_new_prompt_has_no_results_yet() {
        let asked =
            conversation(vec![user(&["first"]), Turn::Assistant, Turn::Tool("old".to_owned()), user(&["second"])]);
        assert_eq!(asked.prompt(), Prompt { text: "second", results: vec![] });
        assert_eq!(asked.prompts().collect::<Vec<_>>(), ["first", "second"]);
    }

    #[test]
    fn within_a_message_the_text_with_a_directive_counts() {
        assert_eq!(conversation(vec![user(&["[[say a]]", "a file"])]).prompt().text, "[[say a]]");
    }

    #[test]
    fn less_than_is_no_tag() {
        for text in ["<3 this", "< a", "<B> bold", "1 < 2", "<"] {
            assert_eq!(conversation(vec![user(&[text])]).prompt().text, text);
        }
    }

    #[test]
    fn nothing_said_is_an_empty_prompt() {
        assert_eq!(conversation(vec![]).prompt().text, "");
        assert_eq!(conversation(vec![user(&["<env>only context"])]).prompt().text, "");
    }
}
