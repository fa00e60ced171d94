//! Listing tasks, a page at a time.

use switchboard_a2a::{Error, ListRequest};
use switchboard_engine::ListFilter;

use super::error::from_engine;
use super::operation::OperationCall;
use super::operation_result::OperationResult;
use super::page_token::PageTokens;
use super::task_page::TaskPageResult;
use crate::response_budget::SMALL;

/// How many tasks a page holds if the caller does not say.
const PAGE_SIZE: u32 = 50;

/// Finds a page; its tasks are read as they are written.
pub(super) async fn perform(call: &mut OperationCall<'_>, request: ListRequest) -> Result<OperationResult, Error> {
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
    Ok(OperationResult::Tasks(Box::new(TaskPageResult { listing, tokens, page_size, reserved })))
}
