//! A page of the feed that goes back in time, newest item first.
//!
//! The store reads rows forward only. Their ids rise by one with each, so a stretch of ids is a stretch of rows: stretches
//! are read from the end to the beginning, and those in which nothing is left make the next one longer.

use std::collections::VecDeque;

use switchboard_engine::Seq;
use switchboard_engine::store::StoreError;
use switchboard_engine::store::feed::{FeedCursor, FeedStart, Position};

use super::filter::FeedFilter;
use super::item::{Item, items};
use super::log_rows::named_rows;
use super::view::View;
use crate::hub::HubState;

/// The ids of the first stretch, and of the longest one.
const STRETCH: i64 = 256;
const LONGEST_STRETCH: i64 = 1 << 14;
/// A stretch with fewer rows makes the next one longer.
const FEW_ROWS: usize = 64;
/// Rows and bytes that are read at a time, and how many stretches: a page whose filter leaves out nearly everything ends
/// early, with the cursor to go on from.
const ROWS: usize = 256;
const ROW_BYTES: usize = 1 << 20;
const STRETCHES: usize = 16;

/// Which page.
pub(crate) struct BackwardQuery<'a> {
    pub(crate) view: &'a View,
    pub(crate) filter: &'a FeedFilter,
    /// The items before this place; the newest ones if absent.
    pub(crate) before: Option<FeedCursor>,
    /// Rows up to this one this reader gets from the logs of tasks that the filter names, and not at all if it names none.
    pub(crate) floor: i64,
    pub(crate) size: usize,
}

impl BackwardQuery<'_> {
    fn reads_logs(&self) -> bool {
        self.floor > 0 && self.filter.names_logs()
    }
}

/// A page, newest item first.
#[derive(Debug)]
pub(crate) struct BackwardPage {
    pub(crate) items: Vec<Item>,
    /// Where the next page goes back from; nothing if there are no more items.
    pub(crate) next: Option<FeedCursor>,
    /// Whether there never were older rows than these and those of the next pages: none was deleted or kept back.
    pub(crate) is_whole: bool,
}

/// Items before a place.
pub(crate) async fn read_backward(hub: &HubState, query: &BackwardQuery<'_>) -> Result<BackwardPage, StoreError> {
    let now = hub.parts.store.locate(FeedStart::Now).await?;
    let newest = now.cursor.position.row;
    let bound = query.before.map_or(Position { row: i64::MAX, ..Position::default() }, |before| before.position);
    let lowest = query.floor.max(now.evicted_to.row).max(0);
    let mut page = BackwardPage { items: Vec::new(), next: None, is_whole: lowest == 0 };
    let (mut high, mut stretch) = (bound.row.min(newest), STRETCH);
    for _ in 0..STRETCHES {
        if high <= lowest {
            return below_floor(hub, query, bound, page).await;
        }
        let low = high.saturating_sub(stretch).max(lowest);
        let (found, rows) = read_stretch(hub, query, low, high, bound, query.size - page.items.len()).await?;
        page.items.extend(found.into_iter().rev());
        if page.items.len() >= query.size {
            let is_last = |last: &FeedCursor| last.position.row <= lowest && !query.reads_logs();
            page.next = page.items.last().map(|last| last.id).filter(|last| !is_last(last));
            return Ok(page);
        }
        if rows < FEW_ROWS {
            stretch = (stretch * 2).min(LONGEST_STRETCH);
        }
        high = low;
    }
    if high <= lowest {
        return below_floor(hub, query, bound, page).await;
    }
    let position = Position { row: high + 1, seq: Seq(0), ..Position::default() };
    page.next = Some(FeedCursor { epoch: now.cursor.epoch, position });
    Ok(page)
}

/// Adds what the logs of the tasks that the filter names have below the floor.
async fn below_floor(
    hub: &HubState,
    query: &BackwardQuery<'_>,
    bound: Position,
    mut page: BackwardPage,
) -> Result<BackwardPage, StoreError> {
    if !query.reads_logs() {
        return Ok(page);
    }
    let rows = named_rows(hub, query.view, query.filter).await?;
    for row in rows.iter().rev().filter(|row| row.row <= query.floor) {
        let found = items(hub, query.view, query.filter, row, Seq(0)).await?;
        let mut found: VecDeque<Item> = found.into_iter().filter(|item| item.id.position < bound).collect();
        drop_oldest(&mut found, query.size - page.items.len());
        page.items.extend(found.into_iter().rev());
        if page.items.len() >= query.size {
            page.next = page.items.last().map(|last| last.id);
            break;
        }
    }
    Ok(page)
}

/// The newest items of the rows after `low` up to `high`, oldest first, and how many rows there are.
async fn read_stretch(
    hub: &HubState,
    query: &BackwardQuery<'_>,
    low: i64,
    high: i64,
    bound: Position,
    size: usize,
) -> Result<(VecDeque<Item>, usize), StoreError> {
    let mut found = VecDeque::new();
    let (mut after, mut count) = (Position { row: low, seq: Seq(u64::MAX), ..Position::default() }, 0);
    loop {
        let read = hub.parts.store.read_all(after, ROWS, ROW_BYTES).await?.rows;
        let Some(last) = read.last() else { return Ok((found, count)) };
        let is_last = last.row >= high;
        after = last.cursor().position;
        for row in read.iter().filter(|row| row.row > low && row.row <= high) {
            count += 1;
            let made = items(hub, query.view, query.filter, row, Seq(0)).await?;
            found.extend(made.into_iter().filter(|item| item.id.position < bound));
            drop_oldest(&mut found, size);
        }
        if is_last {
            return Ok((found, count));
        }
    }
}

/// Keeps the newest items. What an event means stays with it.
fn drop_oldest(found: &mut VecDeque<Item>, size: usize) {
    while let Some(oldest) = found.front().map(|item| item.id) {
        let together = found.iter().take_while(|item| item.id == oldest).count();
        if found.len() - together < size {
            return;
        }
        found.drain(..together);
    }
}
