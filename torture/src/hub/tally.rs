//! How many tasks have ended in which way, for the reader of a run: what is never seen in it was not shown by it.

use std::collections::BTreeMap;
use std::fmt;

/// Numbers of tasks by how they have ended.
#[derive(Clone, Debug, Default)]
pub struct Tally(BTreeMap<String, usize>);

impl Tally {
    /// Counts one: its state without the prefix, and the word of its reason, if it has one.
    pub(super) fn count(&mut self, state: &str, detail: Option<&str>) {
        let state = state.strip_prefix("TASK_STATE_").unwrap_or(state).to_lowercase();
        let words = [Some(state.as_str()), detail].into_iter().flatten();
        *self.0.entry(words.collect::<Vec<_>>().join(" ")).or_default() += 1;
    }

    /// All of them.
    #[must_use]
    pub fn total(&self) -> usize {
        self.0.values().sum()
    }

    /// Those that were completed.
    #[must_use]
    pub fn completed(&self) -> usize {
        self.0.get("completed").copied().unwrap_or_default()
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts: Vec<String> = self.0.iter().map(|(how, count)| format!("{count} {how}")).collect();
        formatter.write_str(&counts.join(", "))
    }
}
