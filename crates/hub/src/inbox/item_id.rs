//! The id of an item of the inbox: the task, and the number of the status that asks. An event never changes, so what was
//! decided under an id is what was shown under it.

use std::fmt;

use switchboard_a2a::TaskId;
use switchboard_engine::Seq;

/// `TASK.SEQ`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ItemId {
    pub(crate) task: TaskId,
    pub(crate) question: Seq,
}

impl ItemId {
    /// Reads an id; nothing if it has not the form of one.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (task, question) = text.rsplit_once('.')?;
        let is_number = question.bytes().all(|byte| byte.is_ascii_digit()) && !question.starts_with('0');
        let question = question.parse().ok().filter(|_| is_number)?;
        (!task.is_empty()).then(|| Self { task: TaskId::from(task), question: Seq(question) })
    }
}

impl fmt::Display for ItemId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}", self.task, self.question)
    }
}
