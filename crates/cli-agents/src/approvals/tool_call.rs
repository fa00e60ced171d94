//! A tool call as people see it: the program's own prompt, and the input members below it.
//!
//! A model may write most of a prompt, so hardly anything in it can stand for a member: only a prompt that is one line and
//! nothing but the value, behind a known prefix or none. Everything else is shown, and some values are shown twice.
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
    /// `name: value` of each member of the input that the prompt does not quote.
    pub(super) members: Vec<String>,
    pub(super) omitted: usize,
}

/// A sanitized text, or its beginning and its end.
pub(super) struct Excerpt {
    pub(super) text: String,
    pub(super) omitted: usize,
}

/// The input members, one a line.
struct Members<'a> {
    /// What the prompt may quote: [`quotable`].
    quotable: Vec<&'a str>,
    lines: Vec<String>,
    /// Which of the lines have a value that the prompt quotes.
    quoted: Vec<usize>,
    seen: usize,
    omitted: usize,
}

impl ToolCallText {
    pub(super) fn new(approval: &Approval) -> Self {
        let prompt = excerpt_ends(&approval.prompt, PROMPT_CHARACTERS, EXCERPT_CHARACTERS);
        // A prompt that is shown in part quotes nothing.
        let quotable = if prompt.omitted == 0 { quotable(&approval.prompt, &approval.tool) } else { Vec::new() };
        let is_quoted = approval.input.is_object() && quotable.contains(&approval.input.to_string().as_str());
        let mut members = Members { quotable, lines: Vec::new(), quoted: Vec::new(), seen: 0, omitted: 0 };
        if !is_quoted {
            members.add("", &approval.input);
        }
        // Of several members with the quoted value, none is known to be the one that the prompt is about.
        if let [line] = members.quoted[..] {
            members.lines.remove(line);
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
        let is_empty = match value {
            Value::Null => true,
            Value::String(text) => text.is_empty(),
            Value::Array(items) => items.is_empty(),
            Value::Object(members) => members.is_empty(),
            Value::Bool(_) | Value::Number(_) => false,
        };
        let name = match name {
            // Nothing was given.
            "" if is_empty => return,
            "" => "input",
            name => name,
        };
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        if value.is_string() && self.quotable.contains(&text.as_str()) {
            self.quoted.push(self.lines.len());
        }
        self.lines.push(format!("{name}: {}", bounded(text)));
    }
}

/// What a prompt quotes if it is `TEXT`, `Run TEXT`, `TOOL: TEXT` or `TOOL TEXT`, on one line. In other places it may say
/// anything about a text, such as `Explain TEXT`, or on its next line that the text is not run.
fn quotable<'a>(prompt: &'a str, tool: &str) -> Vec<&'a str> {
    if prompt.contains('\n') {
        return Vec::new();
    }
    let of_tool = prompt.get(..tool.len()).filter(|prefix| !tool.is_empty() && prefix.eq_ignore_ascii_case(tool));
    let of_tool = of_tool.map(|_| &prompt[tool.len()..]);
    let of_tool = of_tool.and_then(|rest| rest.strip_prefix(": ").or_else(|| rest.strip_prefix(' ')));
    let texts = [Some(prompt), prompt.strip_prefix("Run "), of_tool].into_iter().flatten();
    texts.filter(|text| !text.trim().is_empty()).collect()
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
