//! `GET /api/invocations`: tasks that have ended, as their outcomes.

use http::{Response, StatusCode};
use serde_json::json;
use switchboard_engine::store::TaskRow;
use switchboard_engine::store::lineage::Via;
use switchboard_server::Body;

use super::error::ApiError;
use super::request::ApiRequest;
use super::route::{Parameter, Route};
use super::tasks::query;
use crate::feed::is_own;
use crate::task_rows::{CallerNames, outcome, routing, scan};

pub(super) const ROUTE: Route =
    Route::get("/api/invocations", "List what has ended, and how", |request| Box::pin(answer(request)))
        .parameters(&[
            Parameter::new("agent", "Only tasks of this agent."),
            Parameter::new("owner", "Only tasks of this caller; for keys with a role."),
            Parameter::new("state", "Only tasks that ended so: `completed`, `failed`, `canceled` or `rejected`.")
                .words(&["completed", "failed", "canceled", "rejected"]),
            Parameter::new("via", "Only tasks that came this way: `a2a`, `api`, `cron`, `route` or `channel`.")
                .words(&["a2a", "api", "cron", "route", "channel"]),
            Parameter::new("since", "Only tasks that ended at or after this time, in RFC 3339.").time(),
            Parameter::new("before", "Only tasks that ended before this time, in RFC 3339.").time(),
            Parameter::new("pageSize", "Outcomes on a page, 1 to 100; 50 by default.").integer(),
            Parameter::new("after", "The token under next of the page before."),
        ])
        .refusals(&[(403, "FORBIDDEN")]);

/// What the hub's own agents do is counted where it is done.
fn is_outcome(row: &TaskRow) -> bool {
    row.state.state.is_terminal() && !is_own(&row.task.agent)
}

async fn answer(request: ApiRequest<'_>) -> Result<Response<Body>, ApiError> {
    let size = request.number("pageSize", 50, 1..=100)?;
    let (mut query, tokens) = query(&request)?;
    query.via = request.word("via", &Via::ALL.map(|via| (via.name(), via)))?;
    if let Some(state) = query.state.filter(|state| !state.is_terminal()) {
        let given = switchboard_engine::state_label(state);
        return Err(super::request::wrong("state", given, "completed or failed or canceled or rejected"));
    }
    let (rows, next) = scan(request.hub, query, size, is_outcome).await?;
    let names = CallerNames::read(request.hub).await?;
    let mut items = Vec::with_capacity(rows.len());
    for row in &rows {
        let Some((outcome, _)) = outcome(request.hub, row).await? else { continue };
        let mut item = json!(outcome);
        names.put(&mut item, "actor", &row.task.owner);
        names.put(&mut item, "owner", &row.task.owner);
        if let Some(routing) = routing(request.hub, row).await? {
            item["routing"] = routing;
        }
        item["taskId"] = json!(row.task.id);
        item["contextId"] = json!(row.task.context);
        item["at"] = row.state.status_at.to_string().into();
        item["via"] = row.task.lineage.via.name().into();
        items.push(item);
    }
    let mut answer = json!({ "items": items });
    if let Some(next) = next {
        answer["next"] = tokens.write(next).into();
    }
    Ok(request.answer(StatusCode::OK, &answer))
}
