//! A page of the feed from the store, for readers that ask now and then.

use switchboard_engine::Seq;
use switchboard_engine::store::feed::{FeedCursor, FeedRow, FeedStart, Position};
use switchboard_engine::store::{ServerStore, StoreError};

use super::filter::FeedFilter;
use super::item::{Item, items};
use super::log_rows::{Logs, PIECES};
use super::view::View;
use crate::hub::HubState;

/// Rows that are read at a time, and how often: a page whose filter leaves out nearly everything ends early, with the
/// cursor to go on from.
const ROWS: usize = 256;
const ROW_BYTES: usize = 1 << 20;
const READS: usize = 16;

/// Which page.
pub(crate) struct FeedPageQuery<'a> {
    pub(crate) view: &'a View,
    pub(crate) filter: &'a FeedFilter,
    pub(crate) start: FeedStart,
    /// Rows up to this one this reader gets from the logs of tasks that the filter names, and not at all if it names none.
    pub(crate) floor: i64,
    /// How many items it has …
    pub(crate) size: usize,
    /// … until they have so many bytes.
    pub(crate) max_bytes: usize,
}

/// A page, and the cursor of the next one.
pub(crate) struct FeedItems {
    pub(crate) items: Vec<Item>,
    pub(crate) next: FeedCursor,
    /// Whether more items were left out for their bytes alone.
    pub(crate) is_cut: bool,
}

/// A page as it is filled.
struct Page<'a> {
    hub: &'a HubState,
    query: &'a FeedPageQuery<'a>,
    cursor: FeedCursor,
    found: Vec<Item>,
    /// Of these, those that say that something is missing: a page has room for an item beside them, or the next one would
    /// begin where it did.
    gaps: usize,
    bytes: usize,
}

impl Page<'_> {
    fn add_gap(&mut self, at: FeedCursor) {
        self.found.push(Item::gap(at));
        self.gaps += 1;
    }

    /// Adds the items of a row; false if the page is full before its end.
    async fn add(&mut self, row: &FeedRow) -> Result<bool, StoreError> {
        let read = self.cursor.position;
        let after = if row.row == read.row { read.seq } else { Seq(0) };
        for item in items(self.hub, self.query.view, self.query.filter, row, after).await? {
            // What an event means stays with it.
            let is_full = self.found.len() - self.gaps >= self.query.size || self.bytes >= self.query.max_bytes;
            if is_full && self.found.last().is_some_and(|last| last.id != item.id) {
                return Ok(false);
            }
            self.cursor = item.id;
            self.bytes += item.bytes();
            self.found.push(item);
        }
        self.cursor = row.cursor();
        Ok(true)
    }

    /// Adds what the logs have up to the floor; false if the page is full before their end.
    async fn add_logs(&mut self, logs: &Logs) -> Result<bool, StoreError> {
        for _ in 0..PIECES {
            let rows = logs.after(self.hub, self.cursor.position, self.query.floor).await?;
            if rows.is_empty() {
                return Ok(true);
            }
            for row in &rows {
                if !self.add(row).await? {
                    return Ok(false);
                }
            }
        }
        Ok(false)
    }

    fn end(self) -> FeedItems {
        let is_cut = self.bytes >= self.query.max_bytes && self.found.len() < self.query.size;
        FeedItems { items: self.found, next: self.cursor, is_cut }
    }
}

/// Items after a place.
pub(crate) async fn read_page(hub: &HubState, query: &FeedPageQuery<'_>) -> Result<FeedItems, StoreError> {
    let store = &*hub.parts.store;
    let located = store.locate(query.start).await?;
    let mut page = Page { hub, query, cursor: located.cursor, found: Vec::new(), gaps: 0, bytes: 0 };
    let is_below = located.cursor.position.row < query.floor;
    if located.is_gap {
        page.add_gap(located.cursor);
    }
    if is_below {
        if query.filter.names_logs() {
            let logs = Logs::named(hub, query.view, query.filter).await?;
            if !page.add_logs(&logs).await? {
                return Ok(page.end());
            }
        }
        page.cursor = end_of(store, query.floor).await?;
        if !query.filter.names_logs() && page.found.is_empty() {
            page.add_gap(page.cursor);
        }
    }
    for _ in 0..READS {
        let read = store.read_all(page.cursor.position, ROWS, ROW_BYTES).await?;
        if read.rows.is_empty() {
            break;
        }
        for row in read.rows {
            if !page.add(&row).await? {
                return Ok(page.end());
            }
        }
    }
    Ok(page.end())
}

/// The place after a row.
async fn end_of(store: &dyn ServerStore, row: i64) -> Result<FeedCursor, StoreError> {
    let before = Position { row: row - 1, seq: Seq(i64::MAX.cast_unsigned()), ..Position::default() };
    let next = store.read_all(before, 1, 1).await?.rows.pop();
    Ok(match next {
        Some(found) if found.row <= row => found.cursor(),
        // It was deleted.
        Some(found) => FeedCursor { epoch: found.epoch, position: Position { row, ..Position::default() } },
        None => store.locate(FeedStart::Now).await?.cursor,
    })
}
