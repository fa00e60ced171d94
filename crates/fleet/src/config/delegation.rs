//! What an agent of `agents.yaml` may delegate: `delegates`, and its own limits under `delegation`.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;
use switchboard_engine::{AgentDelegation, Delegate, Delegates, LimitOverrides};
use switchboard_host::config::problem::Mismatch;
use switchboard_host::config::section::Section;
use switchboard_host::config::size::Count;
use switchboard_host::config::value::Scalar;
use switchboard_host::json_schema_of;

/// An entry of `delegates`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DelegateEntry {
    text: String,
    delegate: Delegate,
}

/// Limits of one agent's calls.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(default, deny_unknown_fields)]
pub struct AgentLimits {
    /// `delegation.maxDepth` for this agent.
    pub max_depth: Option<Count>,
    /// `delegation.revisit` for this agent.
    pub revisit: Option<u32>,
    /// `delegation.maxChildren` for this agent.
    pub max_children: Option<Count>,
    /// `delegation.maxTree` for this agent.
    pub max_tree: Option<Count>,
}

impl AgentLimits {
    pub(crate) fn read(&mut self, section: &mut Section<'_, '_>) {
        section.read("maxDepth", &mut self.max_depth);
        section.read("revisit", &mut self.revisit);
        section.read("maxChildren", &mut self.max_children);
        section.read("maxTree", &mut self.max_tree);
    }
}

/// What the kernel is told of it.
pub(crate) fn delegation(delegates: &[DelegateEntry], limits: &AgentLimits) -> AgentDelegation {
    AgentDelegation {
        delegates: Delegates::Only(delegates.iter().map(|entry| entry.delegate.clone()).collect()),
        limits: LimitOverrides {
            max_depth: limits.max_depth.map(Count::get),
            revisit: limits.revisit.map(|revisit| usize::try_from(revisit).unwrap_or(usize::MAX)),
            max_children: limits.max_children.map(Count::get),
            max_tree: limits.max_tree.map(Count::get),
        },
    }
}

impl fmt::Display for DelegateEntry {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

impl Serialize for DelegateEntry {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl Scalar for DelegateEntry {
    const WRITE: &'static str = "the name of an agent, NAME/SKILL, or remote:* for every agent elsewhere";

    fn from_text(text: &str) -> Result<Self, Mismatch> {
        match text.parse() {
            Ok(delegate) => Ok(Self { text: text.to_owned(), delegate }),
            Err(error) => Err(Mismatch::new(format!("{error}"), format!("write {}", Self::WRITE))),
        }
    }
}

json_schema_of!(DelegateEntry, { "type": "string", "pattern": "^(remote:\\*|[a-z0-9][a-z0-9-]{0,62}(/.+)?)$" });
