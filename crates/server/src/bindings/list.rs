//! Reading many tasks, a page at a time, and of a page one task at a time: what is in memory at once is one task and what
//! is already written.

use switchboard_a2a::encode::ListWriter;
use switchboard_a2a::{Error, ListRequest};
use switchboard_engine::List;

use super::call::Call;
use super::error;
use super::page_token::Tokens;

/// How many tasks a page holds if the caller does not say.
const PAGE_SIZE: u32 = 50;

/// Writes a page. Version 0.3 names the operation and leaves its form open: there it is the page of 1.0 with tasks of 0.3.
pub(super) async fn answer(call: &Call<'_>, request: ListRequest, out: &mut Vec<u8>) -> Result<(), Error> {
    let (engine, caller) = (&call.state.engine, &call.identity.caller);
    let tokens = Tokens::new(engine.secret(), &caller.id, &call.address, &request);
    let after = request.page_token.as_deref().map(|token| tokens.read(token)).transpose()?;
    let page_size = request.page_size.unwrap_or(PAGE_SIZE);
    let list = List {
        context: request.context_id,
        state: request.status,
        since: request.status_timestamp_after,
        after,
        page_size: usize::try_from(page_size).unwrap_or(usize::MAX),
        artifacts: request.include_artifacts,
        history: request.history_length.map(|length| usize::try_from(length).unwrap_or(usize::MAX)),
    };
    let mut listing = engine.list(&call.address, caller, list).await.map_err(error::of)?;
    let mut page = ListWriter::begin(call.dialect, request.include_artifacts, out);
    let mut last = None;
    let next = loop {
        let Some(found) = listing.next().await.map_err(error::of)? else { break listing.next_page };
        if !page.task_within(&found.task, call.state.options.page) {
            break last;
        }
        last = Some(found.place);
    };
    let token = next.map(|place| tokens.write(place)).unwrap_or_default();
    page.end(&token, page_size, listing.total);
    Ok(())
}
