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
use super::log_rows::{Logs, PIECES};
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
    /// What is read in place of all rows, up to the floor.
    pub(crate) logs: Option<&'a Logs>,
    /// The items before this place; the newest ones if absent.
    pub(crate) before: Option<FeedCursor>,
    /// Rows up to this one this reader gets from the logs of tasks that the filter names, and not at all if it names none.
    pub(crate) floor: i64,
    /// How many items it has …
    pub(crate) size: usize,
    /// … until they have so many bytes.
    pub(crate) max_bytes: usize,
}

impl BackwardQuery<'_> {
    /// The place that all items are before.
    fn bound(&self) -> Position {
        self.before.map_or(Position { row: i64::MAX, ..Position::default() }, |before| before.position)
    }

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
    /// Whether more items were left out for their bytes alone.
    pub(crate) is_cut: bool,
    bytes: usize,
}

impl BackwardPage {
    fn new(is_whole: bool) -> Self {
        Self { items: Vec::new(), next: None, is_whole, is_cut: false, bytes: 0 }
    }

    /// Adds items before all that it has; true once it is full.
    fn add(&mut self, query: &BackwardQuery<'_>, older: NewestItems) -> bool {
        self.bytes += older.bytes;
        self.items.extend(older.items.into_iter().rev());
        self.is_cut = self.items.len() < query.size && self.bytes >= query.max_bytes;
        self.items.len() >= query.size || self.is_cut
    }

    /// As many older items as fit.
    fn room(&self, query: &BackwardQuery<'_>) -> NewestItems {
        let (size, max_bytes) = (query.size - self.items.len(), query.max_bytes.saturating_sub(self.bytes));
        NewestItems { items: VecDeque::new(), bytes: 0, size, max_bytes }
    }
}

/// Items before a place.
pub(crate) async fn read_backward(hub: &HubState, query: &BackwardQuery<'_>) -> Result<BackwardPage, StoreError> {
    if let Some(logs) = query.logs {
        let mut page = BackwardPage::new(true);
        add_logs(hub, query, logs, &mut page).await?;
        return Ok(page);
    }
    let now = hub.parts.store.locate(FeedStart::Now).await?;
    let newest = now.cursor.position.row;
    let bound = query.bound();
    let lowest = query.floor.max(now.evicted_to.row).max(0);
    let mut page = BackwardPage::new(lowest == 0);
    let (mut high, mut stretch) = (bound.row.min(newest), STRETCH);
    for _ in 0..STRETCHES {
        if high <= lowest {
            return below_floor(hub, query, page).await;
        }
        let low = high.saturating_sub(stretch).max(lowest);
        let (found, rows) = read_stretch(hub, query, low, high, page.room(query)).await?;
        if page.add(query, found) {
            let is_last = |last: &FeedCursor| last.position.row <= lowest && !query.reads_logs();
            page.next = page.items.last().map(|last| last.id).filter(|last| !is_last(last));
            return Ok(page);
        }
        if rows < FEW_ROWS {
            stretch = (stretch * 2).min(LONGEST_STRETCH);
        } else if rows > ROWS {
            // A stretch is read whole, so long ones are only for where few rows are left.
            stretch = STRETCH;
        }
        high = low;
    }
    if high <= lowest {
        return below_floor(hub, query, page).await;
    }
    let position = Position { row: high + 1, seq: Seq(0), ..Position::default() };
    page.next = Some(FeedCursor { epoch: now.cursor.epoch, position });
    Ok(page)
}

/// Adds what the logs of the tasks that the filter names have below the floor.
async fn below_floor(
    hub: &HubState,
    query: &BackwardQuery<'_>,
    mut page: BackwardPage,
) -> Result<BackwardPage, StoreError> {
    if query.reads_logs() {
        let logs = Logs::named(hub, query.view, query.filter).await?;
        add_logs(hub, query, &logs, &mut page).await?;
    }
    Ok(page)
}

/// Adds what logs have up to the floor, until the page is full.
async fn add_logs(
    hub: &HubState,
    query: &BackwardQuery<'_>,
    logs: &Logs,
    page: &mut BackwardPage,
) -> Result<(), StoreError> {
    let bound = query.bound();
    let mut upto = query.floor.min(bound.row);
    for _ in 0..PIECES {
        let rows = logs.back_from(hub, upto).await?;
        if rows.is_empty() {
            page.next = None;
            return Ok(());
        }
        for row in rows {
            let mut found = page.room(query);
            let made = items(hub, query.view, query.filter, &row, Seq(0)).await?;
            found.extend(made.into_iter().filter(|item| item.id.position < bound));
            if page.add(query, found) {
                page.next = page.items.last().map(|last| last.id);
                return Ok(());
            }
            upto = row.row - 1;
            let position = Position { seq: Seq(0), ..row.cursor().position };
            page.next = Some(FeedCursor { epoch: row.epoch, position });
        }
    }
    Ok(())
}

/// The newest items of the rows after `low` up to `high`, and how many rows there are.
async fn read_stretch(
    hub: &HubState,
    query: &BackwardQuery<'_>,
    low: i64,
    high: i64,
    mut found: NewestItems,
) -> Result<(NewestItems, usize), StoreError> {
    let bound = query.bound();
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
        }
        if is_last {
            return Ok((found, count));
        }
    }
}

/// The newest of items that come oldest first, so many or until they have so many bytes.
struct NewestItems {
    items: VecDeque<Item>,
    bytes: usize,
    size: usize,
    max_bytes: usize,
}

impl NewestItems {
    /// Adds newer items and drops the oldest that nobody wants for them. What an event means stays with it.
    fn extend(&mut self, newer: impl Iterator<Item = Item>) {
        for item in newer {
            self.bytes += item.bytes();
            self.items.push_back(item);
        }
        while let Some(oldest) = self.items.front().map(|item| item.id) {
            let together = self.items.iter().take_while(|item| item.id == oldest);
            let (count, bytes) = together.fold((0, 0), |(count, bytes), item| (count + 1, bytes + item.bytes()));
            let (count_left, bytes_left) = (self.items.len() - count, self.bytes - bytes);
            if count_left < self.size && bytes_left < self.max_bytes {
                return;
            }
            self.items.drain(..count);
            self.bytes = bytes_left;
        }
    }
}
