//! The mapping of a declared program's lines to events.

use crate::adapters::declared::condition::Condition;
use crate::adapters::declared::path::Path;
use crate::adapters::declared::questions::ApprovalPaths;
use crate::adapters::declared::section::Section;
use crate::adapters::dialogue::FailureKind;
use crate::adapters::event::Scope;

/// The events of the lines that match. Of several rules the first that matches counts.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Rule {
    pub(crate) when: Vec<Condition>,
    pub(crate) events: Vec<EventTemplate>,
}

/// An event, with the paths of its fields in the line.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum EventTemplate {
    Init {
        session: Option<Path>,
        model: Option<Path>,
    },
    Reasoning(Path),
    /// A part of a message.
    Text(Path),
    /// A whole message.
    Message(Path),
    /// The message is complete.
    TextEnd,
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
    Approval(ApprovalPaths),
    /// A request is withdrawn.
    ApprovalWithdrawn(Path),
    FilesChanged(Path),
    Notice(Path),
    /// Rules for each item of a list.
    Each(Path, Vec<Rule>),
    Usage(UsagePaths),
    Done {
        answer: Option<Path>,
    },
    Error {
        kind: FailureKind,
        message: Option<Path>,
    },
}

/// How a rule decides whether a tool has failed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum IsError {
    Always(bool),
    /// True if the value there is `true`.
    At(Path),
}

/// The paths of the fields of a usage.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct UsagePaths {
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
        let items = section.path("each");
        let rules = section.each("rules", Self::read_flat_rule);
        match (items, rules) {
            (Some(items), Some(rules)) => rule.insert_each(items, rules),
            (Some(_), None) => section.refuse("rules", "is missing", "write the rules for the items of each"),
            (None, Some(_)) if !section.has("each") => {
                section.refuse("each", "is missing", "write the place of the list that the inner rules are about");
            }
            (None, _) => {}
        }
        rule.check_events(section);
        rule
    }

    /// Reads a rule for an item, which has no rules of its own.
    fn read_flat_rule(section: &mut Section<'_, '_>) -> Self {
        let rule = Self::read_flat(section);
        rule.check_events(section);
        rule
    }

    fn read_flat(section: &mut Section<'_, '_>) -> Self {
        let when = Condition::read_all(section);
        let mut events = Vec::new();
        events.extend(section.section("init", |init| {
            let (session, model) = (init.path("session"), init.path("model"));
            EventTemplate::Init { session, model }
        }));
        events.extend(section.path("reasoning").map(EventTemplate::Reasoning));
        events.extend(section.path("text").map(EventTemplate::Text));
        events.extend(section.path("message").map(EventTemplate::Message));
        events.extend(section.flag("textEnd").filter(|ends| *ends).map(|_| EventTemplate::TextEnd));
        events.extend(section.section("toolUse", |call| {
            let (id, tool, input) = (call.path("id"), call.path("tool"), call.path("input"));
            EventTemplate::ToolUse { id, tool, input }
        }));
        events.extend(section.section("toolResult", |result| {
            let (id, tool, output) = (result.path("id"), result.path("tool"), result.path("output"));
            EventTemplate::ToolResult { id, tool, output, is_error: is_error(result) }
        }));
        events.extend(section.section("approval", ApprovalPaths::read).map(EventTemplate::Approval));
        events.extend(section.path("approvalWithdrawn").map(EventTemplate::ApprovalWithdrawn));
        events.extend(section.path("filesChanged").map(EventTemplate::FilesChanged));
        events.extend(section.path("notice").map(EventTemplate::Notice));
        events.extend(section.section("usage", usage).map(EventTemplate::Usage));
        events.extend(section.section("done", |done| EventTemplate::Done { answer: done.path("answer") }));
        events.extend(section.section("error", |error| {
            let kind = error.choice("kind", KINDS).unwrap_or(FailureKind::Reported);
            EventTemplate::Error { kind, message: error.path("message") }
        }));
        Self { when, events }
    }

    /// Inserts the items of a list before usage and result, so that events keep their order in time.
    fn insert_each(&mut self, items: Path, rules: Vec<Self>) {
        let ends = |template: &EventTemplate| {
            matches!(template, EventTemplate::Usage(_) | EventTemplate::Done { .. } | EventTemplate::Error { .. })
        };
        let at = self.events.iter().position(ends).unwrap_or(self.events.len());
        self.events.insert(at, EventTemplate::Each(items, rules));
    }

    /// A rule without events is more often a mistake than intended, so the intent is spelled `ignore`.
    fn check_events(&self, section: &mut Section<'_, '_>) {
        let ignore = section.flag("ignore");
        if ignore == Some(true) && !self.events.is_empty() {
            section.refuse("ignore", "stands beside something to tell", "remove one of them");
        }
        if ignore != Some(true) && self.events.is_empty() && section.is_mapping() && !section.has("each") {
            section.refuse_whole(
                "tells nothing",
                "add text, message, textEnd, reasoning, init, toolUse, toolResult, approval, approvalWithdrawn, \
                 filesChanged, notice, usage, done, error or each; or ignore: true",
            );
        }
    }

    /// Whether this rule, or one for an item of its lists, has such an event.
    pub(crate) fn has_event(&self, which: fn(&EventTemplate) -> bool) -> bool {
        self.events.iter().any(|template| match template {
            EventTemplate::Each(_, rules) => rules.iter().any(|rule| rule.has_event(which)),
            template => which(template),
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

fn is_error(section: &mut Section<'_, '_>) -> IsError {
    let constant = section.value("isError").and_then(serde_json::Value::as_bool);
    match constant {
        Some(constant) => IsError::Always(constant),
        None => section.path("isError").map_or(IsError::Always(false), IsError::At),
    }
}

fn usage(section: &mut Section<'_, '_>) -> UsagePaths {
    UsagePaths {
        scope: section.choice("scope", &[("run", Scope::Run), ("session", Scope::Session)]).unwrap_or_default(),
        input_tokens: section.path("inputTokens"),
        cached_tokens: section.path("cachedTokens"),
        output_tokens: section.path("outputTokens"),
        reasoning_tokens: section.path("reasoningTokens"),
        cost_usd: section.path("costUsd"),
    }
}
