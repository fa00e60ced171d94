//! Rows that the projector panics over. Nothing of their page is written then, so it is read again; a row that makes it panic
//! each time is passed after a few attempts, since otherwise no row behind it would ever count.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde_json::json;
use switchboard_a2a::Timestamp;
use switchboard_engine::store::feed::{FeedContent, FeedRow, JournalLine};
use switchboard_engine::{Error, Seq};

use super::Projector;
use super::fold::Page;

/// The topic of the line that says so.
pub(crate) const ROW_PASSED: &str = "hub.projector.row_passed";

/// How often a row is tried.
const ATTEMPTS: u32 = 3;

/// The panics over rows that are not written.
#[derive(Debug, Default)]
pub(super) struct Panics {
    /// The row that is being folded.
    folding: Option<i64>,
    /// How often each row has ended in a panic.
    counts: BTreeMap<i64, u32>,
}

impl Panics {
    /// Counts a panic, if it was over a row.
    pub(super) fn count(&mut self) {
        if let Some(row) = self.folding.take() {
            *self.counts.entry(row).or_default() += 1;
        }
    }

    /// Forgets the rows up to one, which are written.
    pub(super) fn forget(&mut self, upto: i64) {
        self.counts.retain(|row, _| *row > upto);
    }

    fn passes(&self, row: i64) -> bool {
        self.counts.get(&row).is_some_and(|count| *count >= ATTEMPTS)
    }
}

impl Projector {
    /// Adds a row to a page, or only a line that says that it is passed.
    pub(super) async fn fold_or_pass(&mut self, page: &mut Page, row: &FeedRow, after: Seq) -> Result<(), Error> {
        if self.panics.passes(row.row) {
            tracing::error!(row = row.row, "the projector passes a row over which it has panicked again and again");
            page.journal.push(line(row, self.hub.parts.clock.now()));
            return Ok(());
        }
        self.panics.folding = Some(row.row);
        let folded = self.fold(page, row, after).await;
        self.panics.folding = None;
        folded
    }
}

/// The line `hub.projector.row_passed`, with the task whose events do not count.
fn line(row: &FeedRow, at: Timestamp) -> JournalLine {
    let task = match &row.content {
        FeedContent::Events { task, .. } => Some(task),
        FeedContent::Journal(_) => None,
    };
    let agent = task.map(|task| task.agent.as_str());
    let payload = json!({ "agent": agent, "row": row.row, "attempts": ATTEMPTS });
    JournalLine {
        at,
        owner: None,
        task: task.map(|task| task.id.clone()),
        topic: ROW_PASSED.to_owned(),
        payload: Bytes::from(payload.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::{ATTEMPTS, Panics};

    fn panic_over(panics: &mut Panics, row: i64) {
        panics.folding = Some(row);
        panics.count();
    }

    #[test]
    fn a_row_is_passed_after_some_attempts_and_so_is_the_next_one_of_its_page() {
        let mut panics = Panics::default();
        // A panic that is over no row counts for none.
        panics.count();
        for row in [7, 9] {
            for _ in 0..ATTEMPTS {
                assert!(!panics.passes(row), "it is tried {ATTEMPTS} times");
                panic_over(&mut panics, row);
            }
            panics.count();
        }
        assert!(panics.passes(7) && panics.passes(9) && !panics.passes(8));
        panics.forget(8);
        assert!(!panics.passes(7) && panics.passes(9), "only what is written is forgotten");
    }
}
