//! `GET /api/overview`: how things stand, in one request: what runs, what has ended, what waits for an answer, what fires. A key
//! without a role sees its own part.

use http::{Response, StatusCode};
use serde_json::{Value, json};
use switchboard_a2a::{TaskState, Timestamp};
use switchboard_engine::store::TaskRow;
use switchboard_engine::store::hub::HealthBy;
use switchboard_engine::store::survey::{SurveyQuery, WaitingQuery};
use switchboard_engine::{AgentName, AgentScope, state_label};
use switchboard_server::Body;

use super::alerts;
use super::error::ApiError;
use super::health::figures;
use super::request::ApiRequest;
use super::route::Route;
use crate::feed::View;
use crate::health::Sum;
use crate::task_rows::visible;

pub(super) const ROUTE: Route =
    Route::get("/api/overview", "How things stand: live tasks, outcomes, questions, alerts", |request| {
        Box::pin(answer(request))
    });

/// Questions and failures that are shown.
const SHOWN: usize = 10;
/// Hours that outcomes are shown by.
const HOURS: i64 = 24;
const HOUR_MS: i64 = 3_600_000;

async fn answer(request: ApiRequest<'_>) -> Result<Response<Body>, ApiError> {
    let (hub, view) = (request.hub, View::of(request.caller()));
    let store = &hub.parts.store;
    // Whose tasks, and of which agents.
    let SurveyQuery { owner, agents, own, .. } = visible(&view, None, None);
    let mut counts = store.count_tasks(owner.clone(), agents.clone()).await.map_err(ApiError::Store)?;
    if own.is_some() {
        let agents = Some(AgentName::OWN.map(AgentName::from).to_vec());
        counts.extend(store.count_tasks(own.clone(), agents).await.map_err(ApiError::Store)?);
    }
    let live = |state: TaskState| counts.iter().filter(|(of, _)| *of == state).map(|(_, count)| count).sum::<u64>();
    let (after, max) = (None, SHOWN);
    let waiting = WaitingQuery { owner: owner.clone(), agents: agents.clone(), own: own.clone(), after, max };
    let waiting = store.waiting(waiting).await.map_err(ApiError::Store)?;
    let failed = SurveyQuery {
        owner: owner.clone(),
        agents,
        own,
        state: Some(TaskState::Failed),
        page_size: SHOWN,
        ..SurveyQuery::default()
    };
    let failed = store.survey(failed).await.map_err(ApiError::Store)?.tasks;
    let rows = |rows: &[TaskRow]| rows.iter().map(shown).collect::<Vec<Value>>();
    let mut answer = json!({
        "live": {
            "submitted": live(TaskState::Submitted),
            "working": live(TaskState::Working),
            "inputRequired": live(TaskState::InputRequired),
            "authRequired": live(TaskState::AuthRequired),
        },
        "ended": ended(&request, &view),
        "questions": {
            "open": live(TaskState::InputRequired) + live(TaskState::AuthRequired),
            "oldest": rows(&waiting),
        },
        "failed": rows(&failed),
    });
    if view.has_role() {
        answer["alerts"] = alerts::shown(hub, &view, |state| state.firing).into();
    }
    if view.has_role() && view.caller().scopes.agents == AgentScope::All {
        let outbox = store.outbox_census().await.map_err(ApiError::Store)?;
        answer["webhooks"] =
            json!({ "behind": outbox.behind, "behindSince": outbox.behind_since, "dead": outbox.dead });
    }
    Ok(request.answer(StatusCode::OK, &answer))
}

/// What has ended in the last 24 hours, with a spark: the outcomes and failures of each hour, the newest last.
fn ended(request: &ApiRequest<'_>, view: &View) -> Value {
    let now = request.hub.parts.clock.now().0.div_euclid(HOUR_MS);
    let (by, name) = match view.has_role() {
        true => (HealthBy::All, None),
        false => (HealthBy::Caller, Some(view.caller().id.as_str())),
    };
    let sums = request.hub.health.read();
    let mut totals = Sum::default();
    let mut spark = Vec::new();
    for hour in now - HOURS + 1..=now {
        let mut sum = Sum::default();
        for (agent, of, found) in sums.of_hour(Timestamp(hour * HOUR_MS), by) {
            if name.is_none_or(|name| name == of) && view.sees_agent(&AgentName::from(agent)) {
                sum.merge(found);
            }
        }
        spark.push(json!({ "outcomes": sum.outcomes, "failures": sum.failures() }));
        totals.merge(&sum);
    }
    let mut ended = figures(&totals);
    ended["spark"] = spark.into();
    ended
}

fn shown(row: &TaskRow) -> Value {
    json!({
        "taskId": row.task.id,
        "contextId": row.task.context,
        "agent": row.task.agent.as_str(),
        "state": state_label(row.state.state),
        "since": row.state.status_at,
    })
}
