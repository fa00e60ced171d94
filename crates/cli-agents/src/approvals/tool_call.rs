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

/// A sanitized tool call.
pub(super) struct ToolCallText {
    pub(super) prompt: String,
    /// `name: value` of each member of the input that the prompt does not have.
    pub(super) members: Vec<String>,
    /// Characters that are left out.
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

    /// Whether the prompt has a word.
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests::question;
    use super::*;

    fn asked(prompt: &str, input: Value) -> String {
        let mut question = question(&[]);
        question.approval.tool = prompt.split([':', ' ']).next().unwrap().to_owned();
        question.approval.prompt = prompt.to_owned();
        question.approval.input = input;
        let asked = question.message(None).joined_text();
        asked.strip_prefix("Approve: ").unwrap().split("\nAnswer ").next().unwrap().to_owned()
    }

    #[test]
    fn what_a_prompt_does_not_say_about_a_call_is_shown_with_it() {
        for (prompt, input, shown) in [
            ("Use Bash", json!({"command": "rm -rf ~"}), "Use Bash?\n  command: rm -rf ~"),
            ("mcp__x__y: harmless", json!({"query": "harmless", "script": "rm -rf ~"}), {
                "mcp__x__y: harmless?\n  script: rm -rf ~"
            }),
            ("Edit a.rs", json!({"file_path": "/p/a.rs", "old_string": "x", "new_string": "evil()\n}"}), {
                "Edit a.rs?\n  file_path: /p/a.rs\n  old_string: x\n  new_string: evil()\n  | }"
            }),
            ("Show files", json!({"command": "sh"}), "Show files?\n  command: sh"),
            ("Run ls (List)", json!({"command": "ls"}), "Run ls (List)?"),
            ("Run ls; rm x", json!({"command": "ls"}), "Run ls; rm x?\n  command: ls"),
            ("Please explain rm -rf ~", json!({"command": "rm -rf ~"}), {
                "Please explain rm -rf ~?\n  command: rm -rf ~"
            }),
            ("Which?\n- A: one\n- B", json!({"question": "Which?", "options": ["A", "B"]}), {
                "Which?\n  | - A: one\n  | - B?"
            }),
            ("Fix 2 files", json!({"files": 2}), "Fix 2 files?"),
            ("Is it true", json!({"force": true}), "Is it true?\n  force: true"),
            (r#"mcp__x__y: {"n":1}"#, json!({"n": 1}), r#"mcp__x__y: {"n":1}?"#),
            ("Go", json!({}), "Go?"),
            ("Go", json!(null), "Go?"),
            ("Go", json!("rm -rf ~"), "Go?\n  input: rm -rf ~"),
            ("Go", json!({"a": {"b": [1, {}]}, "c": "", "d": " x"}), {
                "Go?\n  a.b.0: 1\n  a.b.1: {}\n  c: \"\"\n  d: \" x\""
            }),
            ("Go", json!({"a: ls\nb": "\u{202e}"}), "Go?\n  \"a: ls\\nb\": \\u{202e}"),
        ] {
            assert_eq!(asked(prompt, input.clone()), shown, "{prompt} {input}");
        }
    }

    #[test]
    fn no_line_of_a_program_looks_like_one_of_the_question() {
        let forged = "ls?\nAnswer y (this once), always (every Bash of this task) or n.\nrm -rf ~ #";
        let mut question = question(&[("later", crate::adapters::ChoiceKind::Other)]);
        question.approval.prompt = forged.to_owned();
        question.approval.input = json!({"script": format!("{forged} 2")});
        question.approval.tool = forged.to_owned();
        question.approval.choices[0].label = forged.to_owned();
        let asked = question.message(Some(forged)).joined_text();
        let lines: Vec<&str> = asked.lines().filter(|line| !line.starts_with("  | ")).collect();
        let beginnings = ["ls?", "Approve: ls?", "  script: ls?", "Answer y (this once), always (every ls?"];
        assert_eq!(lines, beginnings, "{asked}");
    }

    #[test]
    fn members_share_the_room_of_the_prompt_and_what_is_left_out_counts() {
        let mut question = question(&[]);
        let long = "x".repeat(PROMPT_CHARACTERS);
        question.approval.prompt = "Edit".to_owned();
        question.approval.input = json!({"old": long, "new": format!("{long}; touch EVIL"), "more": 7});
        let asked = question.message(None).joined_text();
        assert!(question.is_incomplete());
        assert!(asked.contains("\n  old: xx") && asked.contains("\n  new: xx"), "{asked}");
        assert!(asked.contains("x; touch EVIL\n  more: 7\nThis is not all of it: "), "{asked}");
        assert!(asked.chars().count() < PROMPT_CHARACTERS + 1_000);

        question.approval.input = json!({"old": &long[..PROMPT_CHARACTERS - "Editold: ".len()]});
        assert!(!question.is_incomplete());
        question.approval.input = json!({"old": &long[..PROMPT_CHARACTERS - "Editold:".len()]});
        assert!(question.is_incomplete());

        question.approval.input = json!(vec![0; 10 * MEMBERS]);
        let shown = ToolCallText::new(&question.approval);
        assert!(shown.members.len() <= MEMBERS && shown.omitted >= 9 * MEMBERS, "{}", shown.omitted);
    }

    #[test]
    fn a_long_prompt_says_nothing_about_members_in_what_is_left_out_of_it() {
        let mut question = question(&[]);
        let filler = "x ".repeat(PROMPT_CHARACTERS);
        question.approval.prompt = format!("{filler} rm -rf ~ {filler}");
        question.approval.input = json!({"command": "rm -rf ~"});
        assert_eq!(ToolCallText::new(&question.approval).members, ["command: rm -rf ~"]);
    }

    #[test]
    fn long_labels_are_shown_whole_or_take_no_plain_yes() {
        let mut question = question(&[("later", crate::adapters::ChoiceKind::Other)]);
        let label = format!("{}and delete everything", "Wait ".repeat(100));
        question.approval.choices[0].label = label.clone();
        question.approval.tool = label.clone();
        let asked = question.message(None).joined_text();
        assert!(asked.contains(&format!("later ({label})")), "{asked}");
        assert!(asked.contains(&format!("every {label} of this task")), "{asked}");
        assert!(!question.is_incomplete());
        question.approval.choices[0].label = label.repeat(10);
        assert!(question.is_incomplete());
        question.approval.choices.clear();
        question.approval.tool = label.repeat(10);
        assert!(question.is_incomplete());
    }
}
