//! `/api/ceremonies`: runs by a schedule, when they are due, what was last, and their history.

use http::{Response, StatusCode};
use serde_json::{Value, json};
use switchboard_engine::store::lineage::Via;
use switchboard_engine::store::survey::SurveyQuery;
use switchboard_engine::{CallerRole, state_label};
use switchboard_server::Body;
use switchboard_server::page_token::PageTokens;

use super::cron_preview;
use super::error::ApiError;
use super::request::{ApiRequest, wrong};
use super::route::{Parameter, Route};
use crate::ceremonies::{Ceremony, Source, context_of, is_run, progress_of};
use crate::hub::HubState;
use crate::task_rows::{CallerNames, scan, shown as shown_task};

/// Next runs that are shown.
const NEXT: usize = 5;

pub(super) const LIST: Route =
    Route::get("/api/ceremonies", "List runs by a schedule, when they are due and what was last", |request| {
        Box::pin(list(request))
    })
    .parameters(&[
        Parameter::new("all", "true: those of all callers; for keys with a role.").words(&["true", "false"]),
        Parameter::new("pageSize", "Ceremonies on a page, 1 to 100; 50 by default.").integer(),
        Parameter::new("after", "The id under next of the page before."),
    ])
    .refusals(&[(403, "FORBIDDEN")])
    .enveloped();
pub(super) const SHOW: Route =
    Route::get("/api/ceremonies/{id}", "Show a ceremony", |request| Box::pin(show(request))).enveloped();
pub(super) const RUNS: Route =
    Route::get("/api/ceremonies/{id}/runs", "List the runs of a ceremony, newest first", |request| {
        Box::pin(runs(request))
    })
    .parameters(&[
        Parameter::new("pageSize", "Runs on a page, 1 to 100; 50 by default.").integer(),
        Parameter::new("after", "The token under next of the page before."),
    ])
    .enveloped();

async fn list(request: ApiRequest<'_>) -> Result<Response<Body>, ApiError> {
    let page_size = request.number("pageSize", 50, 1..=100)?;
    let wants_all = request.word("all", &[("true", true), ("false", false)])?.unwrap_or(false);
    let caller = request.caller();
    if wants_all && caller.scopes.role < CallerRole::Viewer {
        return Err(ApiError::Forbidden("a key without a role sees its own ceremonies: leave all out".to_owned()));
    }
    let is_wanted = |ceremony: &Ceremony| {
        if wants_all { ceremony.is_seen_by(caller) } else { ceremony.owner == caller.id }
    };
    let table = &request.hub.ceremonies.table;
    let (page, is_more) = table.page(request.value("after").unwrap_or_default(), page_size, is_wanted);
    let names = CallerNames::read(request.hub).await?;
    let mut items = Vec::with_capacity(page.len());
    for ceremony in &page {
        items.push(shown(request.hub, &names, ceremony).await?);
    }
    let mut answer = json!({ "items": items });
    if let Some(last) = page.last().filter(|_| is_more) {
        answer["next"] = json!(last.definition.id);
    }
    Ok(request.answer(StatusCode::OK, &answer))
}

async fn show(request: ApiRequest<'_>) -> Result<Response<Body>, ApiError> {
    let ceremony = seen(&request)?;
    let names = CallerNames::read(request.hub).await?;
    let shown = shown(request.hub, &names, &ceremony).await?;
    Ok(request.answer(StatusCode::OK, &shown))
}

async fn runs(request: ApiRequest<'_>) -> Result<Response<Body>, ApiError> {
    let page_size = request.number("pageSize", 50, 1..=100)?;
    let ceremony = seen(&request)?;
    let id = &*ceremony.definition.id;
    let texts = [Some(request.path()), Some(request.caller().id.as_str()), Some(id)];
    let tokens = PageTokens::of(request.hub.parts.store.secret(), &texts);
    let after = match request.value("after") {
        Some(token) => {
            let right = "the token under next of the page before, with the same parameters";
            Some(tokens.read(token).map_err(|_| wrong("after", token, right))?)
        }
        None => None,
    };
    let query = SurveyQuery {
        owner: Some(ceremony.owner.clone()),
        context: Some(context_of(id).into()),
        via: Some(Via::Cron),
        after,
        ..SurveyQuery::default()
    };
    let (rows, next) = scan(request.hub, query, page_size, is_run).await?;
    let names = CallerNames::read(request.hub).await?;
    let mut items = Vec::with_capacity(rows.len());
    for row in &rows {
        items.push(shown_task(request.hub, &names, row).await?);
    }
    let mut answer = json!({ "items": items });
    if let Some(next) = next {
        answer["next"] = tokens.write(next).into();
    }
    Ok(request.answer(StatusCode::OK, &answer))
}

/// The ceremony in the path; one that the caller may not see looks like none.
fn seen(request: &ApiRequest<'_>) -> Result<std::sync::Arc<Ceremony>, ApiError> {
    let id = request.variable("id");
    let found = request.hub.ceremonies.table.find(id).filter(|ceremony| ceremony.is_seen_by(request.caller()));
    found
        .ok_or_else(|| ApiError::NotFound(format!("there is no ceremony {}", id.chars().take(128).collect::<String>())))
}

/// A ceremony with its next runs and what was last.
pub(super) async fn shown(hub: &HubState, names: &CallerNames, ceremony: &Ceremony) -> Result<Value, ApiError> {
    let definition = &ceremony.definition;
    let mut shown = definition.written();
    match ceremony.source {
        Source::File => {
            shown["source"] = "file".into();
            if hub.ceremonies.table.is_hiding(&definition.id) {
                shown["shadowsRegistration"] = true.into();
            }
        }
        Source::Registration { version } => {
            shown["source"] = "registration".into();
            shown["version"] = version.into();
        }
    }
    names.put(&mut shown, "createdBy", &ceremony.owner);
    let now = hub.parts.clock.now();
    let next = if definition.enabled { definition.schedule.occurrences(now, NEXT) } else { Vec::new() };
    shown["next"] = next.iter().map(cron_preview::shown).collect();
    let progress = progress_of(&*hub.parts.store, &definition.id).await?;
    if let Some(last) = progress.and_then(|progress| progress.last) {
        let mut row = json!({ "at": last.at });
        match (last.skipped, last.task) {
            (Some(reason), _) => row["skipped"] = reason.into(),
            (None, Some(task)) => {
                if let Some(found) = hub.parts.store.row(&task).await? {
                    row["state"] = state_label(found.state.state).into();
                }
                row["taskId"] = json!(task);
            }
            (None, None) => {}
        }
        shown["last"] = row;
    }
    Ok(shown)
}
