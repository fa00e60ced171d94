//! A page of the feed from the store, for readers that ask now and then.

use switchboard_engine::store::StoreError;
use switchboard_engine::store::feed::{FeedCursor, FeedStart, Position};

use super::filter::FeedFilter;
use super::item::{Item, items};
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
    /// Rows up to this one are not for this reader.
    pub(crate) floor: i64,
    pub(crate) size: usize,
}

/// Items after a place, and the cursor of the next page.
pub(crate) async fn read_page(
    hub: &HubState,
    query: &FeedPageQuery<'_>,
) -> Result<(Vec<Item>, FeedCursor), StoreError> {
    let store = &hub.parts.store;
    let located = store.locate(query.start).await?;
    let mut cursor = located.cursor;
    let mut found = Vec::new();
    let is_below = cursor.position.row < query.floor;
    if is_below {
        cursor.position = Position { row: query.floor, ..Position::default() };
    }
    if located.is_gap || is_below {
        found.push(Item::gap(cursor));
    }
    for _ in 0..READS {
        let page = store.read_all(cursor.position, ROWS, ROW_BYTES).await?;
        if page.rows.is_empty() {
            break;
        }
        for row in page.rows {
            let after = if row.row == cursor.position.row { cursor.position.seq } else { switchboard_engine::Seq(0) };
            for item in items(hub, query.view, query.filter, &row, after).await? {
                // What an event means stays with it.
                if found.len() >= query.size && found.last().is_some_and(|last| last.id != item.id) {
                    return Ok((found, cursor));
                }
                cursor = item.id;
                found.push(item);
            }
            cursor = row.cursor();
        }
    }
    Ok((found, cursor))
}
