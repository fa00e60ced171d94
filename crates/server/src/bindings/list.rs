//! Listing tasks, a page at a time, and of a page one task at a time: memory holds one task and what is already written.

use switchboard_a2a::encode::ListWriter;
use switchboard_a2a::{Error, ListRequest, rest_files};
use switchboard_engine::store::ListPosition;
use switchboard_engine::{ListFilter, TaskPage};

use super::error::from_engine;
use super::operation::{OperationCall, Reply};
use super::page_token::PageTokens;
use super::render;
use super::rest_files::ListedFiles;
use crate::body::split_into_pieces;
use crate::response_budget::SMALL;

/// How many tasks a page holds if the caller does not say.
const PAGE_SIZE: u32 = 50;

/// Writes a page. Version 0.3 leaves its form open: there it is the page of 1.0 with tasks of 0.3.
pub(super) async fn answer(call: &mut OperationCall<'_>, request: ListRequest) -> Result<Reply, Error> {
    let (engine, caller) = (&call.state.engine, &call.identity.caller);
    let tokens = PageTokens::new(engine.secret(), &caller.id, &call.address, &request);
    let after = request.page_token.as_deref().map(|token| tokens.read(token)).transpose()?;
    let page_size = request.page_size.unwrap_or(PAGE_SIZE);
    let filter = ListFilter {
        context: request.context_id,
        state: request.status,
        since: request.status_timestamp_after,
        after,
        page_size: usize::try_from(page_size).unwrap_or(usize::MAX),
    };
    let reserved = call.reserve(SMALL as u64).await?;
    let mut listing = engine.list(&call.address, caller, filter).await.map_err(from_engine)?;
    listing.artifacts = request.include_artifacts;
    listing.history = request.history_length.map(|length| usize::try_from(length).unwrap_or(usize::MAX));
    let page = Page {
        writer: ListWriter::begin(call.dialect, request.include_artifacts, std::mem::take(&mut call.out)),
        max_bytes: call.state.options.page,
        last: None,
        is_full: false,
        files: call.listed_files(),
        listing,
    };
    if page.listing.bytes() > SMALL as u64 {
        drop(reserved);
        return render_large(call, page, tokens, page_size).await;
    }
    let page = page.fill().await?;
    call.out = page.end(&tokens, page_size);
    Ok(call.written(reserved))
}

/// A page that is being written.
struct Page {
    listing: TaskPage,
    writer: ListWriter,
    max_bytes: usize,
    /// The last task that was written.
    last: Option<ListPosition>,
    /// The next task did not fit.
    is_full: bool,
    files: ListedFiles,
}

impl Page {
    /// Writes everything at once.
    async fn fill(mut self) -> Result<Self, Error> {
        while !self.is_full && self.listing.load().await.map_err(from_engine)? {
            self.write_loaded();
        }
        Ok(self)
    }

    /// Writes the tasks that are loaded.
    fn write_loaded(&mut self) {
        while !self.is_full
            && let Some(mut found) = self.listing.next_loaded()
        {
            if self.files.are_twice(&found.agent) {
                rest_files::add_layer(&mut found.task);
            }
            if self.writer.task_within(&found.task, self.max_bytes) {
                self.last = Some(found.place);
            } else {
                self.is_full = true;
            }
        }
    }

    fn end(self, tokens: &PageTokens, page_size: u32) -> Vec<u8> {
        let next = if self.is_full { self.last } else { self.listing.next_page };
        let token = next.map(|place| tokens.write(place)).unwrap_or_default();
        self.writer.end(&token, page_size, self.listing.total)
    }
}

/// Renders a large page, portion by portion, with a render slot for each: a page that needs a gigabyte to be read delays
/// other callers by one portion.
async fn render_large(
    call: &mut OperationCall<'_>,
    mut page: Page,
    tokens: PageTokens,
    page_size: u32,
) -> Result<Reply, Error> {
    let most = page.listing.largest().max(page.max_bytes as u64).min(page.listing.bytes());
    let reserved = call.reserve(most).await?;
    while !page.is_full {
        let slot = call.render_slot().await?;
        if !page.listing.load().await.map_err(from_engine)? {
            break;
        }
        page = render::off_thread(move || {
            page.write_loaded();
            drop(slot);
            Ok(page)
        })
        .await?;
    }
    let pieces = render::off_thread(move || Ok(split_into_pieces(page.end(&tokens, page_size)))).await?;
    Ok(call.in_pieces(reserved, pieces))
}
