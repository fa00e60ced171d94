//! Which items a reader of the feed wants.

use std::sync::Arc;

use switchboard_a2a::{ContextId, TaskId};
use switchboard_engine::AgentName;
use switchboard_engine::store::TaskIdentity;

use super::alias::{FIRST_WORDS, NamedItem};
use super::topic::Pattern;
use super::topic_index::TopicIndex;

/// The first words of topics of tasks, by whatever name.
pub(crate) const TASK_WORDS: [&str; 7] = ["task", "outcome", "inbox", "flow", "agent", "hitl", "autonomous"];

/// Which items are wanted; what is absent leaves none out.
#[derive(Clone, Debug, Default)]
pub(crate) struct FeedFilter {
    /// One of these has to match; all topics if there is none.
    pub(crate) topics: Vec<Pattern>,
    /// In place of them, where there are many. Then it is only asked what there is: items come without their payload.
    pub(crate) index: Option<Arc<TopicIndex>>,
    pub(crate) agent: Option<AgentName>,
    pub(crate) task: Option<TaskId>,
    pub(crate) context: Option<ContextId>,
    pub(crate) correlation: Option<String>,
}

impl FeedFilter {
    pub(crate) fn wants_topic(&self, topic: &str) -> bool {
        match &self.index {
            Some(index) => index.has(topic),
            None => self.topics.is_empty() || self.topics.iter().any(|pattern| pattern.matches(topic)),
        }
    }

    /// The same for an item of a task, which earlier hubs call something else.
    pub(crate) fn wants_alias(&self, item: &NamedItem<'_>) -> bool {
        if self.index.is_some() {
            return !self.aliases_in_index(item).is_empty();
        }
        let mut patterns = self.topics.iter().filter(|pattern| pattern.begins_with(&FIRST_WORDS)).peekable();
        if patterns.peek().is_none() {
            return false;
        }
        let aliases = item.aliases();
        patterns.any(|pattern| aliases.iter().any(|alias| pattern.matches(alias)))
    }

    /// What earlier hubs call an item of a task, as far as the index has it.
    pub(crate) fn aliases_in_index(&self, item: &NamedItem<'_>) -> Vec<String> {
        let Some(index) = self.index.as_ref().filter(|index| FIRST_WORDS.iter().any(|word| index.begins_with(word)))
        else {
            return Vec::new();
        };
        let mut aliases = item.aliases();
        aliases.retain(|alias| index.has(alias));
        aliases
    }

    /// Whether it names tasks, whose logs can be read in place of all rows.
    pub(crate) fn names_logs(&self) -> bool {
        self.task.is_some() || self.context.is_some()
    }

    pub(crate) fn wants_task(&self, task: &TaskIdentity) -> bool {
        self.agent.as_ref().is_none_or(|agent| *agent == task.agent)
            && self.task.as_ref().is_none_or(|id| *id == task.id)
            && self.context.as_ref().is_none_or(|context| *context == task.context)
    }

    /// Whether it wants a journal line, which belongs to no context.
    pub(crate) fn wants_line(&self, agent: Option<&str>, task: Option<&TaskId>) -> bool {
        self.agent.as_ref().is_none_or(|wanted| Some(wanted.as_str()) == agent)
            && self.task.as_ref().is_none_or(|wanted| Some(wanted) == task)
            && self.context.is_none()
    }

    pub(crate) fn wants_correlation(&self, correlation: Option<&str>) -> bool {
        self.correlation.as_deref().is_none_or(|wanted| Some(wanted) == correlation)
    }
}
