//! Keyword rules: a text in a message picks an agent or a skill.

use switchboard_engine::{AgentName, Skill};

/// A text, and what it picks. Without an agent the skill picks one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeywordRule {
    /// The text to look for; case does not count.
    pub text: String,
    /// Where it may be.
    pub by: KeywordMatch,
    /// The agent that gets the message.
    pub agent: Option<AgentName>,
    /// The skill that the message asks for.
    pub skill: Option<String>,
}

/// Where a keyword may be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeywordMatch {
    /// Between characters that are no part of a word.
    #[default]
    Word,
    /// Anywhere.
    Substring,
}

impl KeywordRule {
    /// Those of a skill's own words. They pick the skill, and any agent that has it.
    pub fn of_skill(skill: &Skill) -> impl Iterator<Item = Self> {
        let picked = Some(skill.id.clone());
        skill.keywords.iter().map(move |word| Self {
            text: word.clone(),
            by: KeywordMatch::Word,
            agent: None,
            skill: picked.clone(),
        })
    }

    /// Whether a text has it. The text is in lower case already.
    pub fn matches(&self, lowercase: &str) -> bool {
        let wanted = self.text.to_lowercase();
        if wanted.is_empty() {
            return false;
        }
        match self.by {
            KeywordMatch::Substring => lowercase.contains(&wanted),
            KeywordMatch::Word => lowercase.match_indices(&wanted).any(|(start, found)| {
                let before = lowercase[..start].chars().next_back();
                let after = lowercase[start + found.len()..].chars().next();
                !is_word(before) && !is_word(after)
            }),
        }
    }
}

fn is_word(character: Option<char>) -> bool {
    character.is_some_and(|character| character.is_alphanumeric() || character == '_')
}
