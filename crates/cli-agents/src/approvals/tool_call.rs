//! A tool call as people see it: the program's own prompt, and the input members that the prompt does not name.
//!
//! A line break of the program is followed by `  | `, so that none of its lines looks like one of the question's.

use serde_json::Value;

use super::sanitize::sanitize;
use crate::adapters::Approval;

/// The longest prompt that is shown whole, with the members of the input.
pub(super) const PROMPT_CHARACTERS: usize = 16_000;
/// Of a longer one so many characters are shown of its beginning, and as many of its end.
pub(super) const EXCERPT_CHARACTERS: usize = 4_000;
/// Where not all members can be shown whole, of each at least so much is, as long as there is room.
const SHORTEST_EXCERPT: usize = 80;
/// More members are not looked at, and count as left out.
const MEMBERS: usize = 1_000;
/// What has a longer name than this is shown as one JSON value.
const NAME_BYTES: usize = 200;

pub(super) struct ToolCallText {
    pub(super) prompt: String,
    /// `name: value` of each member of the input that the prompt does not have.
    pub(super) members: Vec<String>,
    pub(super) omitted: usize,
}

/// A sanitized text, or its beginning and its end.
pub(super) struct Excerpt {
    pub(super) text: String,
    pub(super) omitted: usize,
}

/// The input members that the prompt does not name.
struct Members<'a> {
    tool: &'a str,
    prompt: &'a str,
    lines: Vec<String>,
    seen: usize,
    omitted: usize,
}

impl ToolCallText {
    pub(super) fn new(approval: &Approval) -> Self {
        let prompt = excerpt_ends(&approval.prompt, PROMPT_CHARACTERS, EXCERPT_CHARACTERS);
        // What is left out of the prompt may not speak for a member.
        let said = if prompt.omitted == 0 { approval.prompt.as_str() } else { "" };
        let mut members = Members { tool: &approval.tool, prompt: said, lines: Vec::new(), seen: 0, omitted: 0 };
        if !approval.input.is_object() || !said.contains(&approval.input.to_string()) {
            members.add("", &approval.input);
        }
        let mut call = Self { prompt: prompt.text, members: Vec::new(), omitted: prompt.omitted + members.omitted };
        let lengths: Vec<usize> = members.lines.iter().map(|line| line.chars().count()).collect();
        let mut room = PROMPT_CHARACTERS - (approval.prompt.chars().count() - prompt.omitted);
        let all_fit = lengths.iter().sum::<usize>() <= room;
        let count = lengths.len();
        for (at, (line, length)) in members.lines.iter().zip(lengths).enumerate() {
            let share = if all_fit { room } else { (room / (count - at)).max(SHORTEST_EXCERPT).min(room) };
            if share == 0 {
                call.omitted += length;
                continue;
            }
            let shown = excerpt(line, share);
            room -= length - shown.omitted;
            call.omitted += shown.omitted;
            call.members.push(shown.text);
        }
        call
    }
}

impl Members<'_> {
    /// Adds what is in a value, each text and number on a line of its own. An empty `name` is the whole input's.
    fn add(&mut self, name: &str, value: &Value) {
        match value {
            _ if self.seen >= MEMBERS => self.omitted += value.to_string().chars().count(),
            Value::Object(members) if !members.is_empty() && name.len() <= NAME_BYTES => {
                members.iter().for_each(|(member, value)| self.add(&path(name, &plain(member)), value));
            }
            Value::Array(items) if !items.is_empty() && name.len() <= NAME_BYTES => {
                items.iter().enumerate().for_each(|(at, value)| self.add(&path(name, &at.to_string()), value));
            }
            _ => self.add_line(name, value),
        }
    }

    fn add_line(&mut self, name: &str, value: &Value) {
        self.seen += 1;
        let (text, is_said) = match value {
            Value::String(text) => (text.clone(), self.names(text)),
            value => {
                let text = value.to_string();
                // `true` says nothing without its name.
                let is_said = self.says(&text) && self.says(name);
                (text, is_said)
            }
        };
        match name {
            _ if is_said => {}
            // Nothing was given.
            "" if matches!(text.as_str(), "" | "null" | "{}" | "[]") => {}
            "" => self.lines.push(format!("input: {}", bounded(text))),
            _ => self.lines.push(format!("{name}: {}", bounded(text))),
        }
    }

    /// Whether the prompt names a text as what it is about: `Run TEXT`, `TOOL: TEXT (why)`, `- TEXT: what it means`. In
    /// other places a prompt may say anything about it, such as `Explain TEXT`.
    fn names(&self, text: &str) -> bool {
        let is_named = |at: usize| {
            let line = &self.prompt[self.prompt[..at].rfind('\n').map_or(0, |newline| newline + 1)..at];
            let after = &self.prompt[at + text.len()..];
            let is_end = after.is_empty() || after.starts_with('\n') || after.starts_with(" (");
            match line {
                "- " => is_end || after.starts_with(": "),
                "" | "Run " => is_end,
                _ => {
                    let tool = line.strip_suffix(": ").or_else(|| line.strip_suffix(' '));
                    is_end && tool.is_some_and(|tool| tool.eq_ignore_ascii_case(self.tool))
                }
            }
        };
        !text.trim().is_empty() && self.prompt.match_indices(text).any(|(at, _)| is_named(at))
    }

    fn says(&self, word: &str) -> bool {
        self.prompt.split_whitespace().any(|said| said == word)
    }
}

/// A sanitized text; of one that is longer than `most` the beginning and the end.
pub(super) fn excerpt(text: &str, most: usize) -> Excerpt {
    excerpt_ends(text, most, most / 2)
}

fn excerpt_ends(text: &str, most: usize, ends: usize) -> Excerpt {
    let characters = text.chars().count();
    if characters <= most {
        return Excerpt { text: framed(&sanitize(text)), omitted: 0 };
    }
    let byte = |character| text.char_indices().nth(character).map_or(text.len(), |(byte, _)| byte);
    let (head, tail) = (sanitize(&text[..byte(ends)]), sanitize(&text[byte(characters - ends)..]));
    let omitted = characters - 2 * ends;
    Excerpt { text: framed(&format!("{head}\n«{omitted} characters left out»\n{tail}")), omitted }
}

/// A text of which no line but the first can be taken for one of the question.
pub(super) fn framed(visible: &str) -> String {
    visible.replace('\n', "\n  | ")
}

fn path(name: &str, member: &str) -> String {
    if name.is_empty() { member.to_owned() } else { format!("{name}.{member}") }
}

/// A member's name; one that could be taken for more than a name is quoted.
fn plain(name: &str) -> String {
    let is_plain = |character: char| character.is_ascii_alphanumeric() || matches!(character, '_' | '-');
    if !name.is_empty() && name.chars().all(is_plain) { name.to_owned() } else { Value::from(name).to_string() }
}

/// A value of which both ends can be seen.
fn bounded(text: String) -> String {
    if text.is_empty() || text.trim() != text || text.starts_with('"') { format!("\"{text}\"") } else { text }
}
