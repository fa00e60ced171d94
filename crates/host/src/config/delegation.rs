//! `delegation`: how far agents may call agents.

use serde::Serialize;

use crate::config::size::Count;
use crate::section_keys;
use crate::word_setting;

/// Agents that call agents.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(default, deny_unknown_fields))]
#[serde(rename_all = "camelCase")]
pub struct Delegation {
    /// Tasks from the first one to the deepest, on whichever servers they are.
    ///
    /// A call beyond it is refused with `delegation_depth`.
    pub max_depth: Count,
    /// How often an agent may be called again further down the same chain.
    ///
    /// `1` lets an agent be asked back by the one that it has called. A call beyond it is refused with `delegation_loop`.
    pub revisit: u32,
    /// Tasks that one task may start.
    ///
    /// A call beyond it is refused with `delegation_breadth`.
    pub max_children: Count,
    /// Tasks that one task and all tasks below it may be on this server.
    ///
    /// A call beyond it is refused with `delegation_breadth`.
    pub max_tree: Count,
    /// Whose permission a call needs.
    ///
    /// `agent`: the calling agent's `delegates`; `both`: the key that pays for it must be allowed to call the agent, too.
    pub scope: Scope,
}

/// Whose permission a call needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum Scope {
    /// The calling agent's `delegates`.
    Agent,
    /// The paying key as well.
    Both,
}

word_setting!(Scope: "agent" => Agent or "both" => Both);

section_keys!(Delegation, {
    max_depth: Count::new(12),
    revisit: 1,
    max_children: Count::new(100),
    max_tree: Count::new(1_000),
    scope: Scope::Agent,
});
