//! `GET /api/hitl/pending` and `POST /api/a2a/input`: the open questions of the inbox and their answers, as earlier hubs have
//! them.

use http::{Method, Response, StatusCode};
use serde_json::json;
use switchboard_a2a::Part;
use switchboard_engine::Verdict;
use switchboard_server::Body;

use super::error::ApiError;
use super::inbox::{Wanted, read_open, seen};
use super::inbox_decide::decide;
use super::request::ApiRequest;
use super::route::{Parameter, Route};
use crate::inbox::{GivenDecision, InboxItem};
use crate::task_rows::CallerNames;

pub(super) const PENDING: Route =
    Route::get("/api/hitl/pending", "List questions that wait for an answer, the oldest hundred", |request| {
        Box::pin(pending(request))
    })
    .enveloped();

pub(super) const INPUT: Route =
    Route::new(Method::POST, "/api/a2a/input", "Answer a question", |request| Box::pin(input(request)))
        .enveloped()
        .body(&[
            Parameter::new("requestId", "The id of the question; required.").text(),
            Parameter::new("answer", "The answer; required.").text(),
        ])
        .refusals(&[(403, "FORBIDDEN"), (404, "NOT_FOUND")]);

/// The most that are shown. All are in the inbox.
const SHOWN: usize = 100;

async fn pending(mut request: ApiRequest<'_>) -> Result<Response<Body>, ApiError> {
    let page = read_open(&mut request, Wanted::default(), None, SHOWN).await?;
    let items: Vec<_> = page.items.iter().map(InboxItem::short).collect();
    request.answer_reserved(StatusCode::OK, json!({ "items": items })).await
}

async fn input(mut request: ApiRequest<'_>) -> Result<Response<Body>, ApiError> {
    let mut fields = request.fields().await?;
    let id = fields.text("requestId", "the id of a question");
    let text = fields.text("answer", "the answer");
    fields.finish()?;
    let found = seen(&request, &id).await?;
    let names = CallerNames::read(request.hub).await?;
    let (verdict, parts) = (Verdict::Answer, vec![Part::text(text)]);
    let given = GivenDecision { verdict, feedback: None, parts, option: None, always: false };
    let task = found.row.task.id.clone();
    let decided = match decide(&request, &names, found, given).await {
        Err(ApiError::Conflict { code: "ALREADY_DECIDED", message, .. }) => return Err(ApiError::NotFound(message)),
        decided => decided?,
    };
    let mut answer = json!({ "requestId": id, "taskId": task, "at": decided.at.to_string() });
    names.put(&mut answer, "by", &decided.by);
    Ok(request.answer(StatusCode::OK, &answer))
}
