//! The table of checks: one entry each, with the rule of the specification it enforces and what to do where it fails.

use futures_util::future::BoxFuture;
use serde::Serialize;

use crate::agent::TestedAgent;
use crate::interface::TestedInterface;
use crate::verdict::CheckResult;
use crate::{card, errors, extensions, list, operations, push, security, streaming, version};

pub(crate) use Severity::{Must, Quality, Should};

/// One check.
#[derive(Debug)]
pub struct Check {
    /// Its name, which stays the same from version to version.
    pub id: &'static str,
    /// What it belongs to.
    pub group: Group,
    /// What is true where it passes.
    pub title: &'static str,
    /// Where that is demanded.
    pub rule: &'static str,
    /// How strongly.
    pub severity: Severity,
    /// What to do where it fails.
    pub fix: &'static str,
    pub(crate) run: Run,
}

/// What a check is run on.
#[derive(Debug)]
pub(crate) enum Run {
    /// The agent as a whole, once.
    Agent(for<'a> fn(&'a TestedAgent) -> BoxFuture<'a, CheckResult>),
    /// Each of its interfaces.
    Interface(for<'a> fn(&'a TestedInterface) -> BoxFuture<'a, CheckResult>),
}

impl Check {
    const fn new(group: Group, severity: Severity, id: &'static str, run: Run) -> Self {
        Self { id, group, title: "", rule: "", severity, fix: "", run }
    }

    pub(crate) const fn of_agent(
        group: Group,
        severity: Severity,
        id: &'static str,
        run: for<'a> fn(&'a TestedAgent) -> BoxFuture<'a, CheckResult>,
    ) -> Self {
        Self::new(group, severity, id, Run::Agent(run))
    }

    pub(crate) const fn of_interface(
        group: Group,
        severity: Severity,
        id: &'static str,
        run: for<'a> fn(&'a TestedInterface) -> BoxFuture<'a, CheckResult>,
    ) -> Self {
        Self::new(group, severity, id, Run::Interface(run))
    }

    pub(crate) const fn title(self, title: &'static str) -> Self {
        Self { title, ..self }
    }

    pub(crate) const fn rule(self, rule: &'static str) -> Self {
        Self { rule, ..self }
    }

    pub(crate) const fn fix(self, fix: &'static str) -> Self {
        Self { fix, ..self }
    }
}

/// How strongly something is demanded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Severity {
    /// The specification demands it.
    Must,
    /// The specification advises it.
    Should,
    /// The specification leaves it open; callers are better off with it.
    Quality,
}

impl Severity {
    /// In one word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Must => "must",
            Self::Should => "should",
            Self::Quality => "quality",
        }
    }
}

/// What checks belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Group {
    /// The agent card.
    Card,
    /// Sending, reading and canceling.
    Operations,
    /// Refusals.
    Errors,
    /// Lists of tasks.
    List,
    /// Streams.
    Streaming,
    /// Versions of the protocol.
    Version,
    /// What an agent insists on beyond the protocol.
    Extensions,
    /// Webhooks.
    Push,
    /// Encryption and credentials.
    Security,
}

impl Group {
    /// All of them, in the order of the report.
    pub const ALL: [Self; 9] = [
        Self::Card,
        Self::Operations,
        Self::Errors,
        Self::List,
        Self::Streaming,
        Self::Version,
        Self::Extensions,
        Self::Push,
        Self::Security,
    ];

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Card => "card",
            Self::Operations => "operations",
            Self::Errors => "errors",
            Self::List => "list",
            Self::Streaming => "streaming",
            Self::Version => "version",
            Self::Extensions => "extensions",
            Self::Push => "push",
            Self::Security => "security",
        }
    }

    /// The group of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|group| group.as_str() == name)
    }
}

/// All checks, in the order of the report.
pub fn checks() -> impl Iterator<Item = &'static Check> {
    let groups = [
        card::CHECKS,
        card::security::CHECKS,
        card::signatures::CHECKS,
        card::extended::CHECKS,
        operations::CHECKS,
        operations::cancel::CHECKS,
        operations::history::CHECKS,
        errors::CHECKS,
        errors::form::CHECKS,
        list::CHECKS,
        list::filters::CHECKS,
        streaming::CHECKS,
        streaming::transport::CHECKS,
        streaming::subscribe::CHECKS,
        version::CHECKS,
        extensions::CHECKS,
        push::CHECKS,
        push::delivered::CHECKS,
        push::unknown::CHECKS,
        push::slow_receiver::CHECKS,
        security::CHECKS,
        security::second_caller::CHECKS,
    ];
    groups.into_iter().flatten()
}
