//! What earlier hubs call the items of a task: patterns over their names find the same items, which keep their own topic.

use super::topic::segment;

/// The first words of the names that earlier hubs have for items of tasks.
pub(crate) const FIRST_WORDS: [&str; 4] = ["flow", "agent", "hitl", "autonomous"];

/// An item of a task, by what its names are made of.
pub(crate) struct NamedItem<'a> {
    /// Its topic without the agent, such as `task.working`.
    pub(crate) topic: &'a str,
    /// Whether the task begins with it.
    pub(crate) is_first: bool,
    pub(crate) correlation: &'a str,
    /// Who asked.
    pub(crate) actor: &'a str,
    /// Of an outcome.
    pub(crate) skill: Option<&'a str>,
}

impl NamedItem<'_> {
    /// What earlier hubs call it.
    pub(crate) fn aliases(&self) -> Vec<String> {
        let of_work = |name: &str| format!("{name}.{}", segment(self.correlation));
        let flow_item = |change: &str| format!("flow.item.{change}");
        match self.topic {
            "task.received" if self.is_first => vec![flow_item("created")],
            "task.completed" | "task.failed" | "task.canceled" | "task.rejected" => vec![flow_item("completed")],
            "task.working" | "task.artifact" => vec![flow_item("updated"), of_work("agent.skill.progress")],
            topic if topic.starts_with("task.") => vec![flow_item("updated")],
            "outcome" => {
                vec![format!("autonomous.outcome.{}.{}", segment(self.actor), segment(self.skill.unwrap_or("-")))]
            }
            "inbox.opened" => vec![of_work("hitl.request"), of_work("hitl.pending")],
            "inbox.decided" => vec![of_work("hitl.response")],
            "inbox.expired" => vec![of_work("hitl.expired")],
            _ => Vec::new(),
        }
    }
}
