//! `GET /api/flows`: tasks as flow items, as earlier hubs have them.

use http::{Response, StatusCode};
use serde_json::{Value, json};
use switchboard_a2a::TaskState;
use switchboard_engine::CallerRole;
use switchboard_engine::store::{StoreError, TaskRow};
use switchboard_server::Body;

use super::error::ApiError;
use super::request::ApiRequest;
use super::route::{Parameter, Route};
use super::tasks::{query, seen};
use crate::hub::HubState;
use crate::task_rows::{CallerNames, scan, shown};

pub(super) const LIST: Route = Route::get("/api/flows", "List tasks as flow items", |request| Box::pin(list(request)))
    .role(CallerRole::Viewer)
    .enveloped()
    .parameters(&[
        Parameter::new("status", "Only items that are `active`, `blocked` or `complete`.")
            .words(&["active", "blocked", "complete"]),
        Parameter::new("since", "Only items with a status at or after this time, in RFC 3339.").time(),
        Parameter::new("limit", "Items on a page, 1 to 100; 50 by default.").integer(),
        Parameter::new("after", "The token under next of the page before."),
    ]);
pub(super) const SHOW: Route =
    Route::get("/api/flows/{id}", "Show a task as a flow item", |request| Box::pin(show(request)))
        .role(CallerRole::Viewer)
        .enveloped();

/// How an item stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FlowStatus {
    Active,
    Blocked,
    Complete,
}

impl FlowStatus {
    const ALL: [Self; 3] = [Self::Active, Self::Blocked, Self::Complete];

    fn of(state: TaskState) -> Self {
        match state {
            _ if state.is_terminal() => Self::Complete,
            _ if state.is_interrupted() => Self::Blocked,
            _ => Self::Active,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Blocked => "blocked",
            Self::Complete => "complete",
        }
    }
}

async fn list(request: ApiRequest<'_>) -> Result<Response<Body>, ApiError> {
    let status = request.word("status", &FlowStatus::ALL.map(|status| (status.name(), status)))?;
    let size = request.number("limit", 50, 1..=100)?;
    let (query, tokens) = query(&request)?;
    let is_wanted = |row: &TaskRow| status.is_none_or(|status| FlowStatus::of(row.state.state) == status);
    let (rows, next) = scan(request.hub, query, size, is_wanted).await?;
    let names = CallerNames::read(request.hub).await?;
    let mut items = Vec::with_capacity(rows.len());
    for row in &rows {
        items.push(item(request.hub, &names, row).await?);
    }
    let mut answer = json!({ "items": items });
    if let Some(next) = next {
        answer["next"] = tokens.write(next).into();
    }
    Ok(request.answer(StatusCode::OK, &answer))
}

async fn show(request: ApiRequest<'_>) -> Result<Response<Body>, ApiError> {
    let row = seen(&request).await?;
    let names = CallerNames::read(request.hub).await?;
    let answer = item(request.hub, &names, &row).await?;
    Ok(request.answer(StatusCode::OK, &answer))
}

async fn item(hub: &HubState, names: &CallerNames, row: &TaskRow) -> Result<Value, StoreError> {
    let task = shown(hub, names, row).await?;
    let state = row.state.state;
    let mut item = json!({
        "id": task["taskId"],
        "type": kind(task["skill"].as_str().unwrap_or_default()),
        "status": FlowStatus::of(state).name(),
        "stage": stage(state),
        "updatedAt": task["at"],
    });
    let members = [
        ("title", "title"),
        ("agent", "agent"),
        ("skill", "skill"),
        ("owner", "owner"),
        ("ownerName", "ownerName"),
        ("correlationId", "correlationId"),
        ("contextId", "contextId"),
        ("createdAt", "receivedAt"),
    ];
    for (member, of_task) in members {
        if let Some(value) = task.get(of_task) {
            item[member] = value.clone();
        }
    }
    if state.is_terminal() {
        item["completedAt"] = task["at"].clone();
    }
    Ok(item)
}

fn stage(state: TaskState) -> &'static str {
    match state {
        TaskState::Submitted | TaskState::Unspecified => "dispatched",
        TaskState::Completed => "done",
        _ if state.is_terminal() => "error",
        _ => "running",
    }
}

/// What kind of work a skill is, by its name.
fn kind(skill: &str) -> &'static str {
    const KINDS: [(&str, &str); 8] = [
        ("bug", "defect"),
        ("fix", "defect"),
        ("incident", "defect"),
        ("security", "risk"),
        ("risk", "risk"),
        ("refactor", "debt"),
        ("cleanup", "debt"),
        ("debt", "debt"),
    ];
    let skill = skill.to_ascii_lowercase();
    KINDS.iter().find(|(word, _)| skill.contains(word)).map_or("feature", |(_, kind)| kind)
}
