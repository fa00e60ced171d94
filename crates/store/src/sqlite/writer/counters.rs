//! Task counters per owner, agent and state, in the table `tally`. Changes are collected in memory and written once per
//! transaction, so a batch of five hundred tasks of one caller costs one row.

use std::collections::HashMap;

use rusqlite::Statement;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct CounterKey {
    pub(crate) owner: i64,
    pub(crate) agent: i64,
    pub(crate) state: i64,
    pub(crate) hidden: bool,
    pub(crate) parked: bool,
}

/// The changes of the open transaction.
#[derive(Default)]
pub(crate) struct TaskCounters {
    changes: HashMap<CounterKey, i64>,
}

impl TaskCounters {
    pub(crate) fn add(&mut self, counter: CounterKey, by: i64) {
        *self.changes.entry(counter).or_default() += by;
    }

    pub(crate) fn moved(&mut self, from: CounterKey, to: CounterKey) {
        if from != to {
            self.add(from, -1);
            self.add(to, 1);
        }
    }

    /// The transaction was rolled back.
    pub(crate) fn forget(&mut self) {
        self.changes.clear();
    }

    /// Writes the changes into the open transaction; returns the counters they touched.
    pub(crate) fn write(&mut self, count: &mut Statement<'_>) -> rusqlite::Result<Vec<CounterKey>> {
        let mut touched = Vec::with_capacity(self.changes.len());
        for (counter, by) in self.changes.drain() {
            if by != 0 {
                let CounterKey { owner, agent, state, hidden, parked } = counter;
                count.execute((owner, agent, state, hidden, parked, by))?;
                touched.push(counter);
            }
        }
        Ok(touched)
    }
}
