//! The arguments of a declared program. They are filled in, never read by a shell, and no value can become an option:
//! a prompt comes from a caller and may begin with a dash.

use serde_json::Value;

use crate::adapters::declared::placeholder::{Placeholder, Segment, known, segments};
use crate::adapters::declared::run_flags::run_prompt;
use crate::adapters::declared::section::Section;
use crate::adapters::order::{Order, OrderError};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Arguments {
    groups: Vec<Group>,
    /// The group before which added arguments stand.
    added_at: usize,
}

/// Arguments that stand or fall together: a flag and its value. Left out if one of its values is absent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Group(Vec<Argument>);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Argument {
    segments: Vec<Segment>,
    /// Whether it stands after `--`, where nothing is taken for an option.
    positional: bool,
}

impl Arguments {
    /// Reads `args` of a program, which has one or more names.
    pub(crate) fn read(section: &mut Section<'_, '_>, programs: &[String]) -> Self {
        const RIGHT: &str =
            r#"write a list of texts; a flag and its value that go together as a list: [--model, "{model}"]"#;
        section.require("args", RIGHT);
        let Some(value) = section.value("args") else { return Self::default() };
        let Some(list) = value.as_array() else {
            section.refuse("args", "is not a list", RIGHT);
            return Self::default();
        };
        let mut arguments = Self::default();
        for (index, item) in list.iter().enumerate() {
            let texts: Option<Vec<&str>> = match item {
                Value::Array(texts) if !texts.is_empty() => texts.iter().map(Value::as_str).collect(),
                item => item.as_str().map(|text| vec![text]),
            };
            let name = format!("args[{index}]");
            let Some(texts) = texts else {
                section.refuse(&name, "is neither a text nor a list of texts", RIGHT);
                continue;
            };
            arguments.groups.push(Group::read(section, &name, &texts));
        }
        arguments.mark_positional();
        arguments.check(section, programs);
        arguments.added_at = arguments.place_of_added();
        arguments
    }

    pub(crate) fn uses(&self, placeholder: Placeholder) -> usize {
        self.all().filter(|argument| argument.holds(placeholder)).count()
    }

    pub(crate) fn fill(&self, order: &Order, added: &[String]) -> Result<Vec<String>, OrderError> {
        let mut filled = Vec::new();
        for (index, group) in self.groups.iter().enumerate() {
            if index == self.added_at {
                filled.extend_from_slice(added);
            }
            group.fill(order, &mut filled)?;
        }
        if self.added_at == self.groups.len() {
            filled.extend_from_slice(added);
        }
        Ok(filled)
    }

    /// Arguments without placeholders; braces in them stand for themselves.
    pub(crate) fn fixed(words: &[String]) -> Self {
        let argument = |word: &String| Argument { segments: vec![Segment::Literal(word.clone())], positional: false };
        let groups: Vec<Group> = words.iter().map(|word| Group(vec![argument(word)])).collect();
        Self { added_at: groups.len(), groups }
    }

    /// The same with the prompt as the last argument, behind `--` if these end in it or `dashes` are wanted.
    pub(crate) fn before_prompt(words: &[String], dashes: bool) -> Self {
        let dashes = dashes || words.last().is_some_and(|last| last == "--");
        let mut arguments = Self::fixed(words.strip_suffix(&["--".to_owned()]).unwrap_or(words));
        if dashes {
            arguments.groups.extend(Self::fixed(&["--".to_owned()]).groups);
        }
        let prompt = Argument { segments: vec![Segment::Value(Placeholder::Prompt)], positional: dashes };
        arguments.groups.push(Group(vec![prompt]));
        arguments
    }

    /// Whether one of these programs would run a prompt in them as code; `added` are the arguments that are added.
    pub(crate) fn run_prompt(&self, programs: &[String], added: &[String]) -> bool {
        let mut words = Vec::new();
        for (index, group) in self.groups.iter().enumerate() {
            if index == self.added_at {
                words.extend_from_slice(added);
            }
            for argument in &group.0 {
                let is_run = |program: &String| run_prompt(program, &words, argument.before_prompt());
                if argument.holds(Placeholder::Prompt) && programs.iter().any(is_run) {
                    return true;
                }
                // A value that may be absent cannot be the file that an interpreter runs.
                if !group.is_optional() || argument.literal().is_some() {
                    words.push(argument.template());
                }
            }
        }
        false
    }

    fn all(&self) -> impl Iterator<Item = &Argument> {
        self.groups.iter().flat_map(|group| &group.0)
    }

    /// A `--` counts for what follows it, unless it may be left out.
    fn mark_positional(&mut self) {
        let mut after_dashes = false;
        for group in &mut self.groups {
            let mut here = after_dashes;
            for argument in &mut group.0 {
                argument.positional = here;
                here |= argument.is_dashes();
            }
            after_dashes |= here && !group.is_optional();
        }
    }

    fn check(&self, section: &mut Section<'_, '_>, programs: &[String]) {
        let mut previous: Option<&Argument> = None;
        let runs = self.run_prompt(programs, &[]);
        for (index, group) in self.groups.iter().enumerate() {
            let name = format!("args[{index}]");
            let in_optional_group = group.is_optional();
            for (place, argument) in group.0.iter().enumerate() {
                let after_flag = previous.is_some_and(Argument::is_flag);
                if argument.holds(Placeholder::Prompt) {
                    argument.check_prompt(section, &name, after_flag, runs);
                    if in_optional_group {
                        let right = "put {prompt} outside of that list";
                        section.refuse(&name, "holds {prompt} beside a value that may be absent", right);
                    }
                }
                if place == 0 && after_flag && argument.is_bare_optional() {
                    let right = r#"put both into a list, which is left out as a whole: [--model, "{model}"]"#;
                    section.refuse(&name, "may be absent, and the flag before it would be left without a value", right);
                }
                previous = Some(argument);
            }
        }
    }

    /// Before the first `--`, else before the prompt and its flag, else at the end.
    fn place_of_added(&self) -> usize {
        let dashes = self.groups.iter().position(|group| group.0.iter().any(Argument::is_dashes));
        let prompt = self.groups.iter().position(|group| group.holds(Placeholder::Prompt));
        let before_flag = |prompt: usize| {
            let bare = self.groups.get(prompt).and_then(|group| group.0.first()).is_some_and(Argument::is_bare_prompt);
            let flag = prompt.checked_sub(1).filter(|_| bare);
            let is_flag =
                |at: &usize| self.groups.get(*at).and_then(|group| group.0.last()).is_some_and(Argument::is_flag);
            flag.filter(is_flag).unwrap_or(prompt)
        };
        dashes.or_else(|| prompt.map(before_flag)).unwrap_or(self.groups.len())
    }
}

impl Group {
    fn read(section: &mut Section<'_, '_>, name: &str, texts: &[&str]) -> Self {
        let mut group = Self::default();
        for text in texts {
            if text.contains('\0') {
                section.refuse(name, "holds a zero character", "remove it");
            }
            match segments(text) {
                Ok(segments) => group.0.push(Argument { segments, positional: false }),
                Err(word) => {
                    section.refuse(name, format!("{{{word}}} stands for nothing"), format!("write one of {}", known()))
                }
            }
        }
        group
    }

    fn holds(&self, placeholder: Placeholder) -> bool {
        self.0.iter().any(|argument| argument.holds(placeholder))
    }

    fn is_optional(&self) -> bool {
        self.0.iter().flat_map(Argument::values).any(Placeholder::is_optional)
    }

    fn fill(&self, order: &Order, filled: &mut Vec<String>) -> Result<(), OrderError> {
        for value in self.0.iter().flat_map(Argument::values) {
            if value.value(order)?.is_none() {
                return Ok(());
            }
        }
        for argument in &self.0 {
            filled.push(argument.fill(order)?);
        }
        Ok(())
    }
}

impl Argument {
    fn values(&self) -> impl Iterator<Item = Placeholder> {
        self.segments.iter().filter_map(|segment| match segment {
            Segment::Value(placeholder) => Some(*placeholder),
            Segment::Literal(_) => None,
        })
    }

    fn holds(&self, placeholder: Placeholder) -> bool {
        self.values().any(|value| value == placeholder)
    }

    fn literal(&self) -> Option<&str> {
        match self.segments.as_slice() {
            [Segment::Literal(text)] => Some(text),
            _ => None,
        }
    }

    /// The argument as it is written, with the names of its placeholders.
    fn template(&self) -> String {
        let text = |segment: &Segment| match segment {
            Segment::Literal(text) => text.clone(),
            Segment::Value(placeholder) => format!("{{{}}}", placeholder.word()),
        };
        self.segments.iter().map(text).collect()
    }

    /// The text before its first value, if that could be an option.
    fn before_prompt(&self) -> &str {
        match self.segments.first() {
            Some(Segment::Literal(text)) if !self.positional => text,
            _ => "",
        }
    }

    fn is_dashes(&self) -> bool {
        !self.positional && self.literal() == Some("--")
    }

    /// Whether the next argument may be its value.
    fn is_flag(&self) -> bool {
        !self.positional
            && self
                .literal()
                .is_some_and(|text| text.len() > 1 && text.starts_with('-') && text != "--" && !text.contains('='))
    }

    fn is_bare_optional(&self) -> bool {
        matches!(self.segments.as_slice(), [Segment::Value(value)] if value.is_optional())
    }

    fn is_bare_prompt(&self) -> bool {
        self.segments.first() == Some(&Segment::Value(Placeholder::Prompt))
    }

    /// A prompt must stand where it cannot be taken for an option, and where nothing runs it.
    fn check_prompt(&self, section: &mut Section<'_, '_>, name: &str, after_flag: bool, runs: bool) {
        let before = self.before_prompt();
        if runs {
            let right = "name what is run first, and give it the prompt as an argument of its own after \"--\", which a \
                         text that is run finds as \"$1\"";
            section.refuse(name, "would let the program run what a caller writes", right);
            return;
        }
        let only_dashes = !before.is_empty() && before.chars().all(|letter| letter == '-');
        if before.starts_with('-') && !only_dashes && !before.contains('=') {
            let right = r#"write "--flag={prompt}", or the prompt by itself right after the flag"#;
            section.refuse(name, "is glued to its flag, so that its beginning could be taken for more flags", right);
            return;
        }
        let bare = self.is_bare_prompt() && !self.positional && !after_flag;
        if bare || only_dashes {
            let right = "write it after \"--\", as \"--flag={prompt}\", right after its flag, or leave it out and set \
                         input: prompt";
            section.refuse(name, "could be taken for an option when a message begins with a dash", right);
        }
    }

    fn fill(&self, order: &Order) -> Result<String, OrderError> {
        let mut filled = String::new();
        for segment in &self.segments {
            match segment {
                Segment::Literal(text) => filled.push_str(text),
                Segment::Value(placeholder) => filled.push_str(placeholder.value(order)?.unwrap_or_default()),
            }
        }
        let Some(first) = self.values().next() else { return Ok(filled) };
        let named = if self.holds(Placeholder::Prompt) { Placeholder::Prompt } else { first };
        let what = if named == Placeholder::Prompt { "message" } else { named.word() };
        if filled.contains('\0') {
            return Err(match named {
                Placeholder::Prompt => OrderError::ZeroByte,
                _ => OrderError::Unsupported(format!("the {what} holds a zero character: remove it")),
            });
        }
        if filled.len() > Order::LONGEST_ARGUMENT {
            let value = named.value(order)?.unwrap_or_default().len();
            let around = filled.len() - value;
            let most = Order::LONGEST_ARGUMENT.saturating_sub(around);
            return Err(match named {
                Placeholder::Prompt => OrderError::PromptTooLong { bytes: value, most },
                _ => OrderError::Unsupported(format!("the {what} has {value} bytes: write a shorter one")),
            });
        }
        if matches!(self.segments.first(), Some(Segment::Value(_))) && !self.positional && filled.starts_with('-') {
            let reason =
                format!("the {what} begins with a dash, which this agent could take for an option: begin with a word");
            return Err(OrderError::Unsupported(reason));
        }
        Ok(filled)
    }
}
