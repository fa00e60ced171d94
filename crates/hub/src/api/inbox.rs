//! `GET /api/inbox`: questions that wait for an answer, the oldest first, or what was decided, the newest first; and one of
//! them. A key without a role sees those of its own tasks.

use http::{Response, StatusCode};
use serde::Serialize;
use switchboard_a2a::TaskId;
use switchboard_engine::Seq;
use switchboard_engine::store::feed::FeedCursor;
use switchboard_engine::store::survey::{SurveyQuery, WaitingQuery};
use switchboard_engine::store::{ListPosition, TaskRow};
use switchboard_server::page_token::PageTokens;
use switchboard_server::{Body, SMALL_RESPONSE};

use super::error::ApiError;
use super::feed::{PAGE_BYTES, read_back};
use super::request::{ApiRequest, wrong};
use super::route::{Parameter, Route};
use crate::feed::{BackwardPage, BackwardQuery, FeedFilter, Pattern, View};
use crate::inbox::{InboxItem, ItemId, Kind, Question, Stage};
use crate::task_rows::{CallerNames, visible};

pub(super) const LIST: Route =
    Route::get("/api/inbox", "List questions that wait for an answer, or what was decided", |request| {
        Box::pin(list(request))
    })
    .parameters(&[
        Parameter::new("state", "`open`, which it is if absent, or `decided`.").words(&["open", "decided"]),
        Parameter::new("stage", "Only open questions of this stage: `caller`, `operator` or `escalated`.").words(&[
            "caller",
            "operator",
            "escalated",
        ]),
        Parameter::new("kind", "Only questions of this kind: `question`, `auth` or `gate`.")
            .words(&["question", "auth", "gate"]),
        Parameter::new("agent", "Only questions of this agent."),
        Parameter::new("pageSize", "Questions on a page, 1 to 100; 50 by default.").integer(),
        Parameter::new("after", "The token under next of the page before."),
    ]);
pub(super) const SHOW: Route =
    Route::get("/api/inbox/{id}", "Show a question, whole", |request| Box::pin(show(request)));

/// Messages that may stand between a question and its decision.
const READ_BACK: usize = 4_096;
/// The topic of what was decided.
const DECIDED: &str = "inbox.decided.#";
/// Questions that are looked at for one page with a filter; a page of which nearly all are left out ends early.
const READ_ROWS: usize = 100;
const READS: usize = 10;

/// Which open questions are wanted.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Wanted {
    pub(super) stage: Option<Stage>,
    pub(super) kind: Option<Kind>,
}

impl Wanted {
    fn is_all(self) -> bool {
        self.stage.is_none() && self.kind.is_none()
    }

    fn has(self, kind: Kind, stage: Stage) -> bool {
        self.kind.is_none_or(|wanted| wanted == kind) && self.stage.is_none_or(|wanted| wanted == stage)
    }
}

/// A page of the inbox.
pub(super) struct InboxPage {
    pub(super) items: Vec<InboxItem>,
    next: Option<ListPosition>,
    bytes: usize,
    /// Whether more was left out for its bytes alone.
    is_cut: bool,
}

#[derive(Serialize)]
struct Listed {
    items: Vec<InboxItem>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

async fn list(mut request: ApiRequest<'_>) -> Result<Response<Body>, ApiError> {
    let size = request.number("pageSize", 50, 1..=100)?;
    let wanted = Wanted { stage: request.word("stage", &Stage::ALL)?, kind: request.word("kind", &Kind::ALL)? };
    if request.word("state", &[("open", false), ("decided", true)])? == Some(true) {
        return list_decided(request, wanted, size).await;
    }
    let tokens = tokens(&request);
    let after = after(&request, |token| tokens.read(token).ok())?;
    let page = read_open(&mut request, wanted, after, size).await?;
    let listed = Listed { items: page.items, next: page.next.map(|next| tokens.write(next)) };
    request.answer_reserved(StatusCode::OK, listed).await
}

/// The tokens of the pages of one list.
pub(super) fn tokens(request: &ApiRequest<'_>) -> PageTokens {
    let given = ["agent", "stage", "kind"].map(|name| request.value(name));
    let texts: Vec<Option<&str>> =
        [Some(request.path()), Some(request.caller().id.as_str())].into_iter().chain(given).collect();
    PageTokens::of(request.hub.parts.store.secret(), &texts)
}

fn after<T>(request: &ApiRequest<'_>, read: impl Fn(&str) -> Option<T>) -> Result<Option<T>, ApiError> {
    let Some(token) = request.value("after") else { return Ok(None) };
    let right = "the token under next of the page before, with the same parameters";
    read(token).map(Some).ok_or_else(|| wrong("after", token, right))
}

/// Open questions within the caller's response budget. What is reserved for a small page is enough for most.
pub(super) async fn read_open(
    request: &mut ApiRequest<'_>,
    wanted: Wanted,
    after: Option<ListPosition>,
    size: usize,
) -> Result<InboxPage, ApiError> {
    request.reserve(SMALL_RESPONSE as u64).await?;
    let page = read_page(request, wanted, after, size, SMALL_RESPONSE).await?;
    if !page.is_cut {
        return Ok(page);
    }
    drop(page);
    request.reserve(PAGE_BYTES as u64).await?;
    read_page(request, wanted, after, size, PAGE_BYTES).await
}

async fn read_page(
    request: &ApiRequest<'_>,
    wanted: Wanted,
    after: Option<ListPosition>,
    size: usize,
    max_bytes: usize,
) -> Result<InboxPage, ApiError> {
    let (hub, view) = (request.hub, View::of(request.caller()));
    let SurveyQuery { owner, agents, own, .. } = visible(&view, None, request.agent());
    let mut query = WaitingQuery { owner, agents, own, after, max: READ_ROWS };
    let names = CallerNames::read(hub).await?;
    let (now, caller_first) = (hub.parts.clock.now(), hub.parts.config.hub.inbox.caller_first.duration());
    let mut page = InboxPage { items: Vec::new(), next: None, bytes: 0, is_cut: false };
    for _ in 0..READS {
        if wanted.is_all() {
            // One more tells whether another page follows.
            query.max = size - page.items.len() + 1;
        }
        let rows = hub.parts.store.waiting(query.clone()).await?;
        let is_last = rows.len() < query.max;
        for row in &rows {
            page.is_cut = page.bytes >= max_bytes;
            if page.is_cut || page.items.len() >= size {
                page.next = query.after;
                return Ok(page);
            }
            query.after = Some((row.state.status_at, row.key));
            // It may have been answered since the row was read.
            let Some(question) = Question::open(&*hub.parts.store, row).await? else { continue };
            let (kind, stage) = (Kind::of(&question), Stage::of(&question, &row.task, caller_first, now));
            if wanted.has(kind, stage) {
                let item = InboxItem::open(hub, &names, row, question).await?.listed();
                page.bytes += item.bytes + ITEM_BYTES;
                page.items.push(item);
            }
        }
        if is_last {
            return Ok(page);
        }
    }
    page.next = query.after;
    Ok(page)
}

/// About what an item has besides its question.
const ITEM_BYTES: usize = 768;

/// What was decided, as the feed has it.
async fn list_decided(mut request: ApiRequest<'_>, wanted: Wanted, size: usize) -> Result<Response<Body>, ApiError> {
    if !wanted.is_all() {
        let name = if wanted.stage.is_some() { "stage" } else { "kind" };
        return Err(ApiError::invalid(name, "is there beside state", "none: it is for open questions"));
    }
    let before = after(&request, FeedCursor::parse)?;
    let view = View::of(request.caller());
    let topics = Pattern::parse(DECIDED).into_iter().collect();
    let filter = FeedFilter { topics, agent: request.agent(), ..FeedFilter::default() };
    let floor = if view.has_role() { 0 } else { request.hub.engine.feed_floor() };
    let (view, filter) = (&view, &filter);
    let query = BackwardQuery { view, filter, logs: None, before, floor, size, max_bytes: PAGE_BYTES };
    let BackwardPage { items: found, next, .. } = read_back(&mut request, query).await?;
    let names = CallerNames::read(request.hub).await?;
    let mut items = Vec::new();
    for item in found {
        let Some(task) = item.source.task_id else { continue };
        items.extend(decided(&request, &names, &task, item.id.position.seq).await?);
    }
    let listed = Listed { items, next: next.map(|next| next.to_string()) };
    request.answer_reserved(StatusCode::OK, listed).await
}

/// The question that a message has answered, with its answer.
async fn decided(
    request: &ApiRequest<'_>,
    names: &CallerNames,
    task: &TaskId,
    answer: Seq,
) -> Result<Option<InboxItem>, ApiError> {
    let hub = request.hub;
    let Some(row) = hub.parts.store.row(task).await? else { return Ok(None) };
    let question = Question::answered_by(&*hub.parts.store, row.key, answer, READ_BACK).await?;
    let Some(question) = question else { return Ok(None) };
    let answer = hub.engine.answer_to(&row, question.seq).await?;
    Ok(Some(InboxItem::closed(hub, names, &row, question, answer.as_deref()).await?.listed()))
}

/// A question that the caller may see.
pub(super) struct Seen {
    pub(super) id: ItemId,
    pub(super) row: TaskRow,
    pub(super) question: Question,
}

/// The question in the path; what the caller may not see looks like what is not there.
pub(super) async fn seen(request: &ApiRequest<'_>, id: &str) -> Result<Seen, ApiError> {
    let missing = || {
        let shown: String = id.chars().take(120).collect();
        ApiError::NotFound(format!("there is no question {shown:?}"))
    };
    let store = &*request.hub.parts.store;
    let view = View::of(request.caller());
    let id = ItemId::parse(id).ok_or_else(missing)?;
    let row = store.row(&id.task).await?.filter(|row| !row.state.hidden && view.sees_task(&row.task));
    let row = row.ok_or_else(missing)?;
    let question = Question::at(store, row.key, id.question).await?.ok_or_else(missing)?;
    Ok(Seen { id, row, question })
}

async fn show(mut request: ApiRequest<'_>) -> Result<Response<Body>, ApiError> {
    let id = request.variable("id").to_owned();
    let small = SMALL_RESPONSE as u64;
    request.reserve(small).await?;
    let mut found = seen(&request, &id).await?;
    let bytes = found.question.events.events.len() as u64;
    if bytes > small {
        drop(found);
        request.reserve(bytes).await?;
        found = seen(&request, &id).await?;
    }
    let item = shown(&request, found).await?;
    request.answer_reserved(StatusCode::OK, item).await
}

/// A question as it is now: open, or closed by its answer.
async fn shown(request: &ApiRequest<'_>, found: Seen) -> Result<InboxItem, ApiError> {
    let hub = request.hub;
    let names = CallerNames::read(hub).await?;
    let Seen { row, question, .. } = found;
    let open = Question::open(&*hub.parts.store, &row).await?;
    if open.is_some_and(|open| open.seq == question.seq) {
        return Ok(InboxItem::open(hub, &names, &row, question).await?);
    }
    let answer = hub.engine.answer_to(&row, question.seq).await?;
    Ok(InboxItem::closed(hub, &names, &row, question, answer.as_deref()).await?)
}
