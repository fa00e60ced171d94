//! `POST /api/plan`: which skills are expected to move a value the wanted way, and on request a task of the best one.

use http::{Method, Response, StatusCode};
use serde_json::{Value, json};
use switchboard_a2a::{Json, Message, Metadata, Role};
use switchboard_engine::{Address, IncomingMessage};
use switchboard_server::Body;

use super::error::ApiError;
use super::request::ApiRequest;
use super::route::{Parameter, Route};
use crate::planner::{Candidate, Goal, Want, candidates};

pub(super) const ROUTE: Route =
    Route::new(Method::POST, "/api/plan", "Find skills by what they change", |request| Box::pin(answer(request))).body(
        &[
            Parameter::new("domain", "The part of the world, such as `board`; required.").text(),
            Parameter::new("path", "Where in it, such as `data.open`; required.").text(),
            Parameter::new("want", "`up` or `down`: which way the value should go; required.").words(&["up", "down"]),
            Parameter::new("limit", "Candidates in the answer, 1 to 100; 5 if absent.").integer(),
            Parameter::new("dispatch", "`{message: TEXT}`: starts the best one as a task.").object(),
        ],
    );

async fn answer(mut request: ApiRequest<'_>) -> Result<Response<Body>, ApiError> {
    let mut fields = request.fields().await?;
    let domain = fields.text("domain", "the part of the world, such as board");
    let path = fields.text("path", "where in it, such as data.open");
    let want = fields.word("want", &[("up", Want::Up), ("down", Want::Down)]);
    if want.is_none() && !fields.has_problem("want") {
        fields.problem("want", "is missing", "up or down");
    }
    let limit = fields.number("limit", 5, 1..=100);
    let message = match fields.value("dispatch") {
        None => None,
        Some(dispatch) => match text_of(&dispatch) {
            Some(text) => Some(text),
            None => {
                fields.problem("dispatch", "is no message", "{\"message\": TEXT}");
                None
            }
        },
    };
    fields.finish()?;
    let goal = Goal { domain, path, want: want.unwrap_or(Want::Up) };
    let found = {
        let hub = request.hub;
        let sums = hub.health.read();
        candidates(&**hub.engine.directory(), request.caller(), &goal, &sums, hub.parts.clock.now())
    };
    let task = match (message, found.first()) {
        (Some(message), Some(best)) => Some(dispatch(&request, message, best).await?),
        (Some(_), None) => {
            let problem =
                format!("no skill that this key may call declares an effect on {} {}", goal.domain, goal.path);
            return Err(ApiError::NotFound(problem));
        }
        (None, _) => None,
    };
    let mut answer = json!({ "candidates": &found[..found.len().min(limit)] });
    if let Some(task) = task {
        answer["taskId"] = task.into();
    }
    Ok(request.answer(StatusCode::OK, &answer))
}

/// The text of `{"message": TEXT}`.
fn text_of(dispatch: &Value) -> Option<String> {
    let members = dispatch.as_object().filter(|members| members.len() == 1)?;
    members.get("message")?.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

/// Sends the message to the candidate as the caller's own, and returns the task's id.
async fn dispatch(request: &ApiRequest<'_>, text: String, best: &Candidate) -> Result<String, ApiError> {
    let mut metadata = Metadata::default();
    let hints = [("skill", json!(best.skill)), ("targets", json!([best.agent]))];
    for (name, value) in hints {
        metadata.insert(name, Json::from_serialize(&value).map_err(|error| unwritable(&error))?);
    }
    let incoming = IncomingMessage {
        address: Address::Root,
        message: Message::text(Role::User, text),
        accepted_output_modes: Vec::new(),
        metadata: Some(metadata),
        idempotency_key: None,
        trace: None,
        push_config: None,
        webhook: None,
        return_immediately: true,
        streaming: false,
    };
    let engine = &request.hub.engine;
    let routed = engine.route(request.caller(), incoming).await?;
    let submitted = engine.send(routed).await?;
    Ok(submitted.id().to_string())
}

fn unwritable(error: &impl std::fmt::Display) -> ApiError {
    ApiError::invalid("dispatch", error.to_string(), "a text")
}
