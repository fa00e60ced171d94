//! A node is an open handle of the store with a number of its own. The lock on the data directory proves that all nodes
//! of earlier processes are dead; a process has one node, and several only in tests of what nodes do to each other.

use std::sync::Arc;

use parking_lot::Mutex;
use switchboard_engine::store::Holder;

/// One node, and which others of this process are alive.
#[derive(Clone)]
pub(crate) struct Node {
    number: i64,
    live: Arc<Mutex<Vec<i64>>>,
}

impl Node {
    /// Nodes with rising numbers that know each other.
    pub(crate) fn all(first: i64, count: u32) -> Vec<Self> {
        let numbers: Vec<i64> = (0..i64::from(count)).map(|index| first + index).collect();
        let live = Arc::new(Mutex::new(numbers.clone()));
        numbers.into_iter().map(|number| Self { number, live: Arc::clone(&live) }).collect()
    }

    /// Stands as the holder of a turn in its row.
    pub(crate) fn number(&self) -> i64 {
        self.number
    }

    pub(crate) fn is_live(&self) -> bool {
        self.live.lock().contains(&self.number)
    }

    pub(crate) fn is_alone(&self) -> bool {
        *self.live.lock() == [self.number]
    }

    /// From now on its turns may be claimed by others. It stays dead.
    pub(crate) fn die(&self) {
        self.live.lock().retain(|number| *number != self.number);
    }

    /// Who holds a turn, as this node sees it.
    pub(crate) fn holder(&self, number: Option<i64>) -> Holder {
        match number {
            None => Holder::Unheld,
            Some(number) if number == self.number => Holder::This,
            Some(number) if self.live.lock().contains(&number) => Holder::Other,
            Some(_) => Holder::Dead,
        }
    }

    /// The live nodes as a list in SQL.
    pub(crate) fn live_numbers(&self) -> String {
        let numbers: Vec<String> = self.live.lock().iter().map(i64::to_string).collect();
        numbers.join(", ")
    }
}
