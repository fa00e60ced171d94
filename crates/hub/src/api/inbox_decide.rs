//! `POST /api/inbox/{id}:decide`: ends the wait of a question. The first decision counts, and a later one learns who was
//! first; the same one of the same key again is no error.

use http::{Method, Response, StatusCode};
use serde_json::{Value, json};
use switchboard_a2a::{Part, Timestamp};
use switchboard_engine::store::TaskRow;
use switchboard_engine::{CallerId, Error, Execution, ReviewAnswer, Reviewer, Seq, Verdict};
use switchboard_server::Body;

use super::dispatch::parts_of;
use super::error::ApiError;
use super::fields::Fields;
use super::inbox::{Seen, seen};
use super::request::ApiRequest;
use super::route::{Parameter, Route};
use crate::audit::Act;
use crate::feed::is_own;
use crate::inbox::{Addressee, Choices, GivenDecision, Kind, Unfitting, VERDICTS, decided, verdict_name};
use crate::task_rows::CallerNames;

pub(super) const ROUTE: Route =
    Route::new(Method::POST, "/api/inbox/{id}:decide", "Decide a question", |request| Box::pin(answer(request)))
        .body(&[
            Parameter::new("decision", "What is decided: `approve`, `reject`, `modify` or `answer`; required.")
                .words(&["approve", "reject", "modify", "answer"]),
            Parameter::new("feedback", "Why, for the agent and the log.").text(),
            Parameter::new("text", "The answer, or with `modify` what to do instead.").text(),
            Parameter::new("parts", "The same as parts of a message.").list(),
            Parameter::new("option", "The id of one of the question's options.").text(),
            Parameter::new("always", "With `approve`: for the rest of the task. Approvals of coding agents take it.")
                .flag(),
        ])
        .refusals(&[(403, "FORBIDDEN"), (409, "ALREADY_DECIDED")]);

/// A decision that counts.
pub(super) struct Decided {
    pub(super) at: Timestamp,
    pub(super) by: CallerId,
}

async fn answer(mut request: ApiRequest<'_>) -> Result<Response<Body>, ApiError> {
    let given = given(&mut request).await?;
    let id = request.variable("id").to_owned();
    let found = seen(&request, &id).await?;
    let task = found.row.task.id.clone();
    let names = CallerNames::read(request.hub).await?;
    let decided = decide(&request, &names, found, given).await?;
    let mut answer = json!({ "taskId": task, "at": decided.at.to_string() });
    names.put(&mut answer, "by", &decided.by);
    Ok(request.answer(StatusCode::OK, &answer))
}

async fn given(request: &mut ApiRequest<'_>) -> Result<GivenDecision, ApiError> {
    let max_parts = request.hub.parts.config.limits.parts.get();
    let mut fields = request.fields().await?;
    let verdict = fields.word("decision", &VERDICTS);
    if verdict.is_none() && !fields.has_problem("decision") {
        fields.problem("decision", "is missing", "approve or reject or modify or answer");
    }
    let parts = parts(&mut fields, max_parts);
    let feedback = fields.optional_text("feedback", "a text");
    let option = fields.optional_text("option", "the id of one of the question's options");
    let always = fields.flag("always");
    fields.finish()?;
    // Refused by now if it is missing.
    let verdict = verdict.unwrap_or(Verdict::Answer);
    Ok(GivenDecision { verdict, feedback, parts, option, always })
}

fn parts(fields: &mut Fields, max: usize) -> Vec<Part> {
    match (fields.optional_text("text", "a text"), fields.value("parts")) {
        (Some(_), Some(_)) => {
            fields.problem("parts", "are there beside text", "one of the two");
            Vec::new()
        }
        (Some(text), None) => vec![Part::text(text)],
        (None, Some(parts)) => parts_of(fields, &parts, max),
        (None, None) => Vec::new(),
    }
}

/// Decides a question that the caller sees.
pub(super) async fn decide(
    request: &ApiRequest<'_>,
    names: &CallerNames,
    found: Seen,
    given: GivenDecision,
) -> Result<Decided, ApiError> {
    let (hub, caller) = (request.hub, request.caller().clone());
    let Seen { id, row, question } = found;
    let agent = &row.task.agent;
    let is_for_operator = question.review.as_ref().is_some_and(|review| review.reviewer == Reviewer::Operator);
    if !caller.scopes.operates(agent) && (row.task.owner != caller.id || is_for_operator) {
        let who = format!("question {id} is for a key with the role operator that may call {agent}");
        return Err(ApiError::Forbidden(who));
    }
    let origin = hub.traces.origin(row.key, &row.task, &question.events).await?;
    let correlation = origin.as_ref().map(|origin| origin.correlation.as_str());
    let to = Addressee { kind: Kind::of(&question), correlation, reads_data: reads_data(request, &row) };
    let choices = question.message().map(Choices::of).unwrap_or_default();
    let message = given.message(&choices, &to, &caller.id).map_err(invalid)?;
    let verdict = given.verdict;
    let decided = hub.engine.answer(&caller, &row.task.id, question.seq, ReviewAnswer { verdict, message }).await;
    let at = match decided {
        Ok(answered) if answered.is_repeated => return Ok(Decided { at: answered.at, by: caller.id }),
        Ok(answered) => answered.at,
        Err(Error::QuestionClosed { .. }) => return Err(already_decided(request, names, &row, question.seq).await?),
        // It was there a moment ago.
        Err(Error::TaskNotFound(_)) => return Err(ApiError::NotFound(format!("there is no question \"{id}\""))),
        Err(error) => return Err(error.into()),
    };
    let mut after = json!({ "decision": verdict_name(verdict) });
    for (member, value) in [("feedback", &given.feedback), ("option", &given.option)] {
        if let Some(value) = value {
            after[member] = value.as_str().into();
        }
    }
    let (subject, task) = (id.to_string(), Some(row.task.id.clone()));
    let act =
        Act { name: "inbox.decide", subject: &subject, agent: Some(agent.as_str()), task, before: Value::Null, after };
    request.audit(act).await;
    Ok(Decided { at, by: caller.id })
}

/// Whether an agent takes data beside the words. One elsewhere may refuse a message for a media type that its card does not
/// have; what the hub's own agents get goes on to others.
fn reads_data(request: &ApiRequest<'_>, row: &TaskRow) -> bool {
    let agent = &row.task.agent;
    if is_own(agent) {
        return false;
    }
    let Some(hosted) = request.hub.engine.directory().find(agent) else { return true };
    let served = hosted.served();
    let is_json = |mode: &String| matches!(mode.as_str(), "*/*" | "application/*" | "application/json");
    served.manifest.execution == Execution::Local || served.manifest.input_modes.iter().any(is_json)
}

fn invalid(unfitting: Unfitting) -> ApiError {
    ApiError::invalid(unfitting.member, unfitting.wrong, unfitting.right)
}

/// The refusal of a question that is closed: by whom, when, and how; nobody if its task has ended or gone on by itself.
async fn already_decided(
    request: &ApiRequest<'_>,
    names: &CallerNames,
    row: &TaskRow,
    question: Seq,
) -> Result<ApiError, ApiError> {
    let answer = request.hub.engine.answer_to(row, question).await?;
    let more = match &answer {
        Some(answer) => decided(names, &row.task, answer),
        None => json!({ "by": null, "at": null, "decision": null }),
    };
    let message = match (&answer, more["byName"].as_str().or(more["by"].as_str())) {
        (Some(_), Some(by)) => format!("{by} has decided it already"),
        (Some(_), None) => "its time was over, and decided it".to_owned(),
        (None, _) => "nobody waits for an answer any more: its task has ended, or has gone on without one".to_owned(),
    };
    Ok(ApiError::Conflict { status: StatusCode::CONFLICT, code: "ALREADY_DECIDED", message, more })
}
