//! The mapping of a declared program's lines to events.

use serde_json::Value;

use crate::adapters::declared::condition::Condition;
use crate::adapters::declared::json_line;
use crate::adapters::declared::path::Path;
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
    Init(Fields),
    Reasoning(Path),
    /// A part of a message.
    Text(Path),
    Message(Path),
    TextEnd,
    ToolUse(Fields),
    ToolResult(Fields, IsError),
    Approval(Fields),
    ApprovalWithdrawn(Path),
    FilesChanged(Path),
    Notice(Path),
    /// Rules for each item of a list.
    Each(Path, Vec<Rule>),
    Usage(Fields, Scope),
    Done(Fields),
    Error(Fields, FailureKind),
}

/// The paths of an event's fields, by their names in declarations.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Fields(Vec<(&'static str, Path)>);

/// How a rule decides whether a tool has failed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum IsError {
    Always(bool),
    /// True if the value there is `true`.
    At(Path),
}

impl Fields {
    fn read(section: &mut Section<'_, '_>, names: &[&'static str]) -> Self {
        Self(names.iter().filter_map(|name| Some((*name, section.path(name)?))).collect())
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> {
        self.0.iter().map(|(name, _)| *name)
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.names().any(|known| known == name)
    }

    /// All values of a field.
    pub(crate) fn find<'v>(&self, name: &str, line: &'v Value) -> Vec<&'v Value> {
        self.0.iter().filter(|(known, _)| *known == name).flat_map(|(_, path)| path.find(line)).collect()
    }

    pub(crate) fn first(&self, name: &str, line: &Value) -> Option<Value> {
        self.find(name, line).first().map(|value| (*value).clone())
    }

    pub(crate) fn text(&self, name: &str, line: &Value) -> Option<String> {
        json_line::joined_text(&self.find(name, line))
    }
}

impl Rule {
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
        let init = |init: &mut Section<'_, '_>| EventTemplate::Init(Fields::read(init, &["session", "model"]));
        events.extend(section.section("init", init));
        events.extend(section.path("reasoning").map(EventTemplate::Reasoning));
        events.extend(section.path("text").map(EventTemplate::Text));
        events.extend(section.path("message").map(EventTemplate::Message));
        events.extend(section.flag("textEnd").filter(|ends| *ends).map(|_| EventTemplate::TextEnd));
        let tool_use =
            |call: &mut Section<'_, '_>| EventTemplate::ToolUse(Fields::read(call, &["id", "tool", "input"]));
        events.extend(section.section("toolUse", tool_use));
        events.extend(section.section("toolResult", |result| {
            EventTemplate::ToolResult(Fields::read(result, &["id", "tool", "output"]), is_error(result))
        }));
        events.extend(section.section("approval", |approval| {
            EventTemplate::Approval(Fields::read(approval, &["request", "tool", "input", "prompt", "choices"]))
        }));
        events.extend(section.path("approvalWithdrawn").map(EventTemplate::ApprovalWithdrawn));
        events.extend(section.path("filesChanged").map(EventTemplate::FilesChanged));
        events.extend(section.path("notice").map(EventTemplate::Notice));
        events.extend(section.section("usage", |usage| {
            let scope = usage.choice("scope", &[("run", Scope::Run), ("session", Scope::Session)]);
            EventTemplate::Usage(Fields::read(usage, &USAGE), scope.unwrap_or_default())
        }));
        events.extend(section.section("done", |done| EventTemplate::Done(Fields::read(done, &["answer"]))));
        events.extend(section.section("error", |error| {
            let kind = error.choice("kind", KINDS).unwrap_or(FailureKind::Reported);
            EventTemplate::Error(Fields::read(error, &["message"]), kind)
        }));
        Self { when, events }
    }

    /// Inserts the items of a list before usage and result, so that events keep their order in time.
    fn insert_each(&mut self, items: Path, rules: Vec<Self>) {
        let ends = |template: &EventTemplate| {
            matches!(template, EventTemplate::Usage(..) | EventTemplate::Done(_) | EventTemplate::Error(..))
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

/// The fields of a usage.
const USAGE: [&str; 5] = ["inputTokens", "cachedTokens", "outputTokens", "reasoningTokens", "costUsd"];

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
    let constant = section.value("isError").and_then(Value::as_bool);
    match constant {
        Some(constant) => IsError::Always(constant),
        None => section.path("isError").map_or(IsError::Always(false), IsError::At),
    }
}
