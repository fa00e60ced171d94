//! `POST /api/agent/ask-human`: a program asks a person, and waits for the answer for a while. The question is a task of
//! `~ask`, so it outlives the wait; then the program polls.

use http::{Method, Response, StatusCode};
use serde::Serialize;
use serde_json::json;
use switchboard_a2a::{Json, Message, MessageId, Metadata, Part, Role, TaskId};
use switchboard_engine::store::lineage::Via;
use switchboard_engine::{Address, AgentName, Error, IncomingMessage, SendResult, Submitted, TraceContext};
use switchboard_server::{Body, idempotency_key};

use super::error::ApiError;
use super::fields::Fields;
use super::request::ApiRequest;
use super::route::{Header, Parameter, Route};
use crate::inbox::{ItemId, Question};
use crate::task_rows::CallerNames;
use crate::tasks::ask::{ASK, HumanAnswer};

pub(super) const ROUTE: Route =
    Route::new(Method::POST, "/api/agent/ask-human", "Ask a person and wait for the answer", |request| {
        Box::pin(answer(request))
    })
    .enveloped()
    .body(&[
        Parameter::new("question", "The question; required.").text(),
        Parameter::new("options", "Answers to choose from: texts, or objects with `id` and `label`.").list(),
        Parameter::new("correlationId", "The work that it is about; this or `taskId`.").text(),
        Parameter::new("taskId", "The task that it is about.").text(),
    ])
    .headers(&[Header::IdempotencyKey])
    .sending();

/// The most options, and the longest name of a piece of work.
const MOST_OPTIONS: usize = 100;
const NAME_BYTES: usize = 256;

/// The data of the question. What its asker claims to ask for counts for nothing.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AskData<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    options: Vec<Json>,
    /// A task of the asker's.
    #[serde(skip_serializing_if = "Option::is_none")]
    task_id: Option<&'a TaskId>,
    /// A task that the asker says to ask for, and that is not its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    claimed_task_id: Option<&'a TaskId>,
}

async fn answer(mut request: ApiRequest<'_>) -> Result<Response<Body>, ApiError> {
    let key = idempotency_key::read(&request.exchange.parts.headers).map_err(ApiError::Protocol)?;
    let mut fields = request.fields().await?;
    let question = fields.text("question", "the question");
    let options = options(&mut fields);
    let correlation = name(&mut fields, "correlationId", "the id of the work that it is about");
    let task = name(&mut fields, "taskId", "the id of a task").map(TaskId::from);
    if correlation.is_none() && task.is_none() && !fields.has_problem("correlationId") && !fields.has_problem("taskId")
    {
        fields.problem("correlationId", "is not there, and neither is taskId", "one of the two");
    }
    fields.finish()?;
    let hub = request.hub;
    let own = match &task {
        Some(id) => hub.parts.store.row(id).await?.filter(|row| row.task.owner == request.caller().id).is_some(),
        None => false,
    };
    let data = AskData {
        kind: "ask_human",
        options,
        task_id: task.as_ref().filter(|_| own),
        claimed_task_id: task.as_ref().filter(|_| !own),
    };
    let mut message = Message::text(Role::User, question.as_str());
    if key.is_some() {
        // A repeated request is the same message.
        message.message_id = MessageId::from("ask-human");
    }
    message.parts.extend(Json::from_serialize(&data).map(Part::data));
    let correlation = correlation.or_else(|| task.as_ref().filter(|_| own).map(TaskId::to_string));
    let trace = TraceContext { correlation_id: correlation, ..TraceContext::default() };
    let incoming = IncomingMessage {
        address: Address::Root,
        message,
        accepted_output_modes: Vec::new(),
        metadata: None,
        idempotency_key: key,
        trace: Some(trace).filter(|trace| !trace.is_empty()).map(Into::into),
        push_config: None,
        webhook: None,
        return_immediately: true,
        streaming: false,
    };
    let routed = hub.engine.route_to_own(request.caller(), &AgentName::from(ASK), incoming).await?;
    let is_repeated = routed.is_repeated();
    let submitted = hub.engine.send(routed.via(Via::Api)).await?;
    let clock = &hub.parts.clock;
    let mut waited = std::pin::pin!(clock.sleep(hub.parts.config.hub.inbox.ask_wait.duration()));
    let mut is_over = false;
    if let Some(task) = task.filter(|_| own && !is_repeated) {
        is_over = tokio::select! {
            biased;
            // Its number is known once it is asked.
            _ = submitted.answer() => false,
            () = &mut waited => true,
        };
        name_in_stream(&request, &task, &submitted, &question).await?;
    }
    let ended = tokio::select! {
        // An answer in time counts even if the time is over in the same moment.
        biased;
        ended = submitted.end() => Some(ended?),
        () = &mut waited, if !is_over => None,
        () = std::future::ready(()), if is_over => None,
    };
    match ended.map(|ended| human_answer(ended, submitted.id())).transpose()?.flatten() {
        Some(given) => {
            let mut told = json!({ "answer": given.answer, "decision": given.decision, "decidedBy": null });
            if let Some(by) = &given.decided_by {
                CallerNames::read(hub).await?.put(&mut told, "decidedBy", by);
            }
            Ok(request.answer(StatusCode::OK, &told))
        }
        None => {
            let id = question_id(&request, submitted.id()).await?;
            let poll_url = format!("/api/a2a/task/{}", submitted.id());
            let told = json!({ "timedOut": true, "answer": null, "requestId": id, "pollUrl": poll_url });
            Ok(request.answer(StatusCode::OK, &told))
        }
    }
}

fn options(fields: &mut Fields) -> Vec<Json> {
    let Some(given) = fields.value("options") else { return Vec::new() };
    let options = given.read::<Vec<Json>>().ok().filter(|options| options.len() <= MOST_OPTIONS);
    let Some(options) = options else {
        fields.problem("options", "are no list of options", "a list of up to 100 texts or objects with id and label");
        return Vec::new();
    };
    options
}

fn name(fields: &mut Fields, member: &str, right: &str) -> Option<String> {
    let given = fields.optional_text(member, right)?;
    if given.len() > NAME_BYTES || given.chars().any(char::is_control) {
        fields.problem(member, format!("has {} bytes, or line breaks", given.len()), "one line of up to 256 bytes");
        return None;
    }
    Some(given)
}

/// Says in the stream of the task that asks that a person was asked. A task that does not work now is not told.
async fn name_in_stream(
    request: &ApiRequest<'_>,
    task: &TaskId,
    submitted: &Submitted,
    question: &str,
) -> Result<(), ApiError> {
    let mut metadata = Metadata::default();
    let id = question_id(request, submitted.id()).await?.unwrap_or_else(|| submitted.id().to_string());
    for (member, value) in [("requestId", id.as_str()), ("kind", "input-request")] {
        if let Ok(value) = Json::from_serialize(value) {
            metadata.insert(member, value);
        }
    }
    let message = Message { metadata: Some(metadata), ..Message::text(Role::Agent, question) };
    request.hub.engine.remark(request.caller(), task, message);
    Ok(())
}

/// The id of the question of a task that asks.
async fn question_id(request: &ApiRequest<'_>, task: &TaskId) -> Result<Option<String>, ApiError> {
    let store = &*request.hub.parts.store;
    let Some(row) = store.row(task).await? else { return Ok(None) };
    let open = Question::open(store, &row).await?;
    Ok(open.map(|open| ItemId { task: task.clone(), question: open.seq }.to_string()))
}

/// The answer that the task has ended with; nothing if it has ended without one.
fn human_answer(ended: SendResult, task: &TaskId) -> Result<Option<HumanAnswer>, Error> {
    let SendResult::Task(reading) = ended else { return Err(Error::TaskNotFound(task.clone())) };
    Ok(reading.into_task()?.status.message.as_ref().and_then(HumanAnswer::of))
}
