//! How deep and how wide a tree of tasks may grow.

use super::delegates::Delegates;

/// Limits of a tree of tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelegationLimits {
    /// Tasks from the root to the deepest one, both counted, on whichever servers they are.
    pub max_depth: usize,
    /// How often an agent may be asked again further down the same chain. One is an agent that its own helper asks back.
    pub revisit: usize,
    /// Tasks that one task may start.
    pub max_children: usize,
    /// Tasks of one tree on this server, the root counted.
    pub max_tree: usize,
}

impl Default for DelegationLimits {
    fn default() -> Self {
        Self { max_depth: 12, revisit: 1, max_children: 100, max_tree: 1_000 }
    }
}

/// Limits of one agent, where it has its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LimitOverrides {
    /// [`DelegationLimits::max_depth`].
    pub max_depth: Option<usize>,
    /// [`DelegationLimits::revisit`].
    pub revisit: Option<usize>,
    /// [`DelegationLimits::max_children`].
    pub max_children: Option<usize>,
    /// [`DelegationLimits::max_tree`].
    pub max_tree: Option<usize>,
}

/// What an agent may delegate, and how far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentDelegation {
    /// The agents it may call.
    pub delegates: Delegates,
    /// Its own limits. They hold for the calls it makes, and for messages from other servers that it gets.
    pub limits: LimitOverrides,
}

impl LimitOverrides {
    /// The limits that hold for the agent.
    pub fn over(self, usual: DelegationLimits) -> DelegationLimits {
        DelegationLimits {
            max_depth: self.max_depth.unwrap_or(usual.max_depth),
            revisit: self.revisit.unwrap_or(usual.revisit),
            max_children: self.max_children.unwrap_or(usual.max_children),
            max_tree: self.max_tree.unwrap_or(usual.max_tree),
        }
    }
}
