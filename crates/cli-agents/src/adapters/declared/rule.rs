//! What a line of a declared program means.

use crate::adapters::declared::condition::Condition;
use crate::adapters::declared::path::Path;
use crate::adapters::declared::section::Section;
use crate::adapters::dialogue::FailureKind;
use crate::adapters::event::Scope;

/// What to tell of lines that fit. Of several rules the first that fits counts.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Rule {
    pub(crate) when: Vec<Condition>,
    pub(crate) tells: Vec<Tell>,
}

/// One thing to tell, with the places where its parts stand.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Tell {
    Init {
        session: Option<Path>,
        model: Option<Path>,
    },
    Reasoning(Path),
    /// A piece of a message.
    Text(Path),
    /// A whole message.
    Message(Path),
    ToolUse {
        id: Option<Path>,
        tool: Option<Path>,
        input: Option<Path>,
    },
    ToolResult {
        id: Option<Path>,
        tool: Option<Path>,
        output: Option<Path>,
        is_error: IsError,
    },
    FilesChanged(Path),
    Notice(Path),
    /// Rules for each item of a list.
    Each(Path, Vec<Rule>),
    Usage(UsagePlaces),
    Done {
        answer: Option<Path>,
    },
    Error {
        kind: FailureKind,
        message: Option<Path>,
    },
}

/// Where it stands whether a tool has failed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum IsError {
    Always(bool),
    /// True if `true` stands there.
    At(Path),
}

/// Where the parts of a usage stand.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct UsagePlaces {
    pub(crate) scope: Scope,
    pub(crate) input_tokens: Option<Path>,
    pub(crate) cached_tokens: Option<Path>,
    pub(crate) output_tokens: Option<Path>,
    pub(crate) reasoning_tokens: Option<Path>,
    pub(crate) cost_usd: Option<Path>,
}

impl Rule {
    /// Reads one rule.
    pub(crate) fn read(section: &mut Section<'_, '_>) -> Self {
        let mut rule = Self::read_flat(section);
        let items = path(section, "each");
        let rules = section.each("rules", Self::read_flat_rule);
        match (items, rules) {
            (Some(items), Some(rules)) => rule.insert_each(items, rules),
            (Some(_), None) => section.refuse("rules", "is missing", "write the rules for the items of each"),
            (None, Some(_)) if !section.has("each") => {
                section.refuse("each", "is missing", "write the place of the list that the inner rules are about");
            }
            (None, _) => {}
        }
        rule.must_tell(section);
        rule
    }

    /// Reads a rule for an item, which has no rules of its own.
    fn read_flat_rule(section: &mut Section<'_, '_>) -> Self {
        let rule = Self::read_flat(section);
        rule.must_tell(section);
        rule
    }

    fn read_flat(section: &mut Section<'_, '_>) -> Self {
        let when = Condition::read_all(section);
        let mut tells = Vec::new();
        tells.extend(section.section("init", |init| {
            let (session, model) = (path(init, "session"), path(init, "model"));
            Tell::Init { session, model }
        }));
        tells.extend(path(section, "reasoning").map(Tell::Reasoning));
        tells.extend(path(section, "text").map(Tell::Text));
        tells.extend(path(section, "message").map(Tell::Message));
        tells.extend(section.section("toolUse", |call| {
            let (id, tool, input) = (path(call, "id"), path(call, "tool"), path(call, "input"));
            Tell::ToolUse { id, tool, input }
        }));
        tells.extend(section.section("toolResult", |result| {
            let (id, tool, output) = (path(result, "id"), path(result, "tool"), path(result, "output"));
            Tell::ToolResult { id, tool, output, is_error: is_error(result) }
        }));
        tells.extend(path(section, "filesChanged").map(Tell::FilesChanged));
        tells.extend(path(section, "notice").map(Tell::Notice));
        tells.extend(section.section("usage", usage).map(Tell::Usage));
        tells.extend(section.section("done", |done| Tell::Done { answer: path(done, "answer") }));
        tells.extend(section.section("error", |error| {
            let kind = error.choice("kind", KINDS).unwrap_or(FailureKind::Reported);
            Tell::Error { kind, message: path(error, "message") }
        }));
        Self { when, tells }
    }

    /// Items are told after what happened and before how it ended.
    fn insert_each(&mut self, items: Path, rules: Vec<Self>) {
        let ends = |tell: &Tell| matches!(tell, Tell::Usage(_) | Tell::Done { .. } | Tell::Error { .. });
        let at = self.tells.iter().position(ends).unwrap_or(self.tells.len());
        self.tells.insert(at, Tell::Each(items, rules));
    }

    /// A rule that tells nothing is more often a mistake than a wish, so the wish has a word of its own.
    fn must_tell(&self, section: &mut Section<'_, '_>) {
        let ignore = section.flag("ignore");
        if ignore == Some(true) && !self.tells.is_empty() {
            section.refuse("ignore", "stands beside something to tell", "remove one of them");
        }
        if ignore != Some(true) && self.tells.is_empty() && section.is_mapping() && !section.has("each") {
            section.refuse_whole(
                "tells nothing",
                "add text, message, reasoning, init, toolUse, toolResult, filesChanged, notice, usage, done, error \
                 or each; or ignore: true",
            );
        }
    }

    /// Whether this rule, or one for an item of its lists, tells such a thing.
    pub(crate) fn tells(&self, which: fn(&Tell) -> bool) -> bool {
        self.tells.iter().any(|tell| match tell {
            Tell::Each(_, rules) => rules.iter().any(|rule| rule.tells(which)),
            tell => which(tell),
        })
    }
}

/// What failures are called in declarations.
pub(crate) const KINDS: &[(&str, FailureKind)] = &[
    ("reported", FailureKind::Reported),
    ("refused", FailureKind::Refused),
    ("notLoggedIn", FailureKind::NotLoggedIn),
    ("unknownSession", FailureKind::UnknownSession),
    ("limit", FailureKind::Limit),
    ("interrupted", FailureKind::Interrupted),
];

fn path(section: &mut Section<'_, '_>, key: &'static str) -> Option<Path> {
    let text = section.text(key)?;
    let path = Path::parse(&text);
    if path.is_none() {
        section.refuse(key, format!("\"{}\" is not a place", crate::adapters::cut(&text, 100)), Path::RIGHT);
    }
    path
}

fn is_error(section: &mut Section<'_, '_>) -> IsError {
    let constant = section.value("isError").and_then(serde_json::Value::as_bool);
    match constant {
        Some(constant) => IsError::Always(constant),
        None => path(section, "isError").map_or(IsError::Always(false), IsError::At),
    }
}

fn usage(section: &mut Section<'_, '_>) -> UsagePlaces {
    UsagePlaces {
        scope: section.choice("scope", &[("run", Scope::Run), ("session", Scope::Session)]).unwrap_or_default(),
        input_tokens: path(section, "inputTokens"),
        cached_tokens: path(section, "cachedTokens"),
        output_tokens: path(section, "outputTokens"),
        reasoning_tokens: path(section, "reasoningTokens"),
        cost_usd: path(section, "costUsd"),
    }
}
