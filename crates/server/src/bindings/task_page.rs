//! A page of tasks, encoded one task at a time: memory holds one task and what is already written.

use switchboard_a2a::encode::ListWriter;
use switchboard_a2a::{Error, rest_files};
use switchboard_engine::TaskPage;
use switchboard_engine::store::ListPosition;

use super::error::from_engine;
use super::operation::OperationCall;
use super::page_token::PageTokens;
use super::render::{self, Rendered};
use super::rest_files::ListedFiles;
use crate::body::split_into_pieces;
use crate::response_budget::{ReservedBytes, SMALL};

/// A page that was found and is yet to be read.
pub(super) struct TaskPageResult {
    pub(super) listing: TaskPage,
    pub(super) tokens: PageTokens,
    pub(super) page_size: u32,
    /// For a small page; given back if it is a large one.
    pub(super) reserved: ReservedBytes,
}

impl OperationCall<'_> {
    /// Writes a page. Version 0.3 leaves its form open: there it is the page of 1.0 with tasks of 0.3.
    pub(super) async fn render_page(&mut self, result: TaskPageResult) -> Result<Rendered, Error> {
        let TaskPageResult { listing, tokens, page_size, reserved } = result;
        let page = Page {
            writer: ListWriter::begin(self.dialect, listing.artifacts, std::mem::take(&mut self.out)),
            max_bytes: self.state.options.page,
            last: None,
            is_full: false,
            files: self.listed_files(),
            listing,
        };
        if page.listing.bytes() > SMALL as u64 {
            drop(reserved);
            return self.render_large_page(page, tokens, page_size).await;
        }
        let page = page.fill().await?;
        self.out = page.end(&tokens, page_size);
        Ok(self.written(reserved))
    }

    /// Renders a large page, portion by portion, with a render slot for each: a page that needs a gigabyte to be read
    /// delays other callers by one portion.
    async fn render_large_page(
        &mut self,
        mut page: Page,
        tokens: PageTokens,
        page_size: u32,
    ) -> Result<Rendered, Error> {
        let most = page.listing.largest().max(page.max_bytes as u64).min(page.listing.bytes());
        let reserved = self.reserve(most).await?;
        while !page.is_full {
            let slot = self.render_slot().await?;
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
        Ok(self.in_pieces(reserved, pieces))
    }
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
