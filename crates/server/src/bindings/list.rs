//! Reading many tasks, a page at a time.

use switchboard_a2a::{Error, ListRequest, ListResponse, encode};
use switchboard_engine::List;

use super::call::Call;
use super::{error, page_token, task};

/// How many tasks a page holds if the caller does not say.
const PAGE_SIZE: u32 = 50;

/// Writes a page. Version 0.3 names the operation and leaves its form open: there it is the page of 1.0 with tasks of 0.3.
pub(super) async fn answer(call: &Call<'_>, request: ListRequest, out: &mut Vec<u8>) -> Result<(), Error> {
    let caller = &call.identity.caller;
    let print = page_token::print(&caller.id, &call.address, &request);
    let after = request.page_token.as_deref().map(|token| page_token::read(token, print)).transpose()?;
    let page_size = request.page_size.unwrap_or(PAGE_SIZE);
    let list = List {
        context: request.context_id,
        state: request.status,
        since: request.status_timestamp_after,
        after,
        page_size: usize::try_from(page_size).unwrap_or(usize::MAX),
    };
    let mut listed = call.state.engine.list(&call.address, caller, list).await.map_err(error::of)?;
    for found in &mut listed.tasks {
        task::trim(found, request.history_length);
    }
    let page = ListResponse {
        tasks: listed.tasks,
        next_page_token: listed.next.map(|place| page_token::write(place, print)).unwrap_or_default(),
        page_size,
        total_size: listed.total,
    };
    out.extend_from_slice(&encode::encode_list(call.dialect, &page, request.include_artifacts));
    Ok(())
}
