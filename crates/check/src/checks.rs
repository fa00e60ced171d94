//! The table of checks: one row each in `docs/checking.md`, with the rule of the specification it enforces and what to do
//! where it fails. The page is built in, so that those who read it and those who run the checks see the same words.

mod table;

use std::sync::LazyLock;

use futures_util::future::BoxFuture;
use serde::Serialize;

use crate::agent::TestedAgent;
use crate::interface::TestedInterface;
use crate::verdict::CheckResult;
use table::{GroupChecks, TABLE};

/// One check.
#[derive(Debug, Serialize)]
pub struct Check {
    /// Its name, which stays the same from version to version.
    pub id: &'static str,
    pub group: Group,
    /// What is true where it passes.
    pub title: &'static str,
    /// Where that is demanded.
    pub rule: &'static str,
    pub severity: Severity,
    /// What to do where it fails. A finding that is no failure does not show it.
    #[serde(skip)]
    pub fix: &'static str,
    #[serde(skip)]
    pub(crate) run: Run,
}

/// What a check is run on.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Run {
    /// The agent as a whole, once.
    Agent(for<'a> fn(&'a TestedAgent) -> BoxFuture<'a, CheckResult>),
    /// Each of its interfaces.
    Interface(for<'a> fn(&'a TestedInterface) -> BoxFuture<'a, CheckResult>),
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
    const ALL: [Self; 3] = [Self::Must, Self::Should, Self::Quality];

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
    Card,
    /// Sending, reading and canceling.
    Operations,
    /// Refusals.
    Errors,
    List,
    Streaming,
    Version,
    /// What an agent insists on beyond the protocol.
    Extensions,
    Push,
    /// Encryption and credentials.
    Security,
}

impl Group {
    /// All of them, in the order of the report.
    pub fn all() -> impl Iterator<Item = Self> {
        TABLE.iter().map(|row| row.group)
    }

    /// Its name.
    pub fn as_str(self) -> &'static str {
        TABLE.iter().find(|row| row.group == self).map_or("", |row| row.name)
    }

    /// The group of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::all().find(|group| group.as_str() == name)
    }
}

/// All checks, in the order of the report.
pub fn checks() -> impl Iterator<Item = &'static Check> {
    static CHECKS: LazyLock<Vec<Check>> = LazyLock::new(|| {
        let of_group =
            |row: &'static GroupChecks| row.checks.iter().map(|(id, run)| Check::of_row(row.group, id, *run));
        TABLE.iter().flat_map(of_group).collect()
    });
    CHECKS.iter()
}

/// The page with a row for each check: name, title, severity, rule and fix.
const PAGE: &str = include_str!("../../../docs/checking.md");

impl Check {
    /// A check with the texts of its row, which a test demands of every check.
    fn of_row(group: Group, id: &'static str, run: Run) -> Self {
        let cells = |line: &'static str| line.strip_prefix("| `")?.strip_suffix(" |")?.split_once("` | ");
        let row = PAGE.lines().filter_map(cells).find(|(name, _)| *name == id);
        let mut cells = row.map_or("", |(_, cells)| cells).split(" | ");
        let mut next = || cells.next().unwrap_or_default();
        let (title, severity, rule, fix) = (next(), next(), next(), next());
        let severity = Severity::ALL.into_iter().find(|known| known.as_str() == severity).unwrap_or(Severity::Must);
        Self { id, group, title, rule, severity, fix, run }
    }
}
