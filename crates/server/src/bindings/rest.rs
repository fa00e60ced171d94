//! REST: the path names the operation, the status tells how it went, the body is the result itself.

use std::pin::pin;
use std::sync::Arc;

use bytes::Bytes;
use http::Response;
use http::header::{CACHE_CONTROL, HeaderValue};
use switchboard_a2a::{Dialect, Error, Operation, RestParts, decode_rest};

use super::dialect::{self, RequestedVersion};
use super::extensions::DeclaredExtensions;
use super::operation::{OperationCall, Reply, until_revoked};
use super::response::{self, Binding};
use super::routes::Rest;
use super::{limits, percent, sse, tenant};
use crate::{Body, RequestContext, State};

/// Answers one request.
pub(super) async fn answer(state: &Arc<State>, path: Rest, mut context: RequestContext) -> Response<Body> {
    let requested = RequestedVersion::read(&context.headers, context.query());
    let operation = path.operation;
    match dialect::of_path(path.prefixed, &requested, state.options.strict_version) {
        Ok(dialect) => {
            let body = std::mem::take(&mut context.body);
            perform(state, path, &context, body, dialect).await
        }
        Err((dialect, error)) => {
            response::measure(Binding::Rest.failure(dialect, &error), Some(operation), None, Some(error.kind))
        }
    }
}

async fn perform(
    state: &Arc<State>,
    path: Rest,
    context: &RequestContext,
    body: Bytes,
    dialect: Dialect,
) -> Response<Body> {
    let operation = path.operation;
    let mut call = OperationCall {
        state,
        address: path.address.clone(),
        dialect,
        operation,
        identity: &context.identity,
        headers: &context.headers,
        json: body,
        declared: DeclaredExtensions::read(&context.headers),
        hosted: None,
        reserved: None,
        sent_files_once: false,
    };
    let mut out = Vec::with_capacity(512);
    let outcome = {
        let running = pin!(run(&mut call, &path, context, &mut out));
        until_revoked(&context.identity, running).await
    };
    let (mut response, failed) = match outcome {
        Ok(Reply::Written) => {
            let body = Body::full(out).counted(call.reserved.take());
            (Binding::Rest.success(dialect, body), None)
        }
        Ok(Reply::Large(pieces)) => {
            let body = Body::pieces(pieces).counted(call.reserved.take());
            (Binding::Rest.success(dialect, body), None)
        }
        Ok(Reply::Nothing) => (Binding::Rest.success(dialect, Body::full("{}")), None),
        Ok(Reply::Events(events)) => (sse::response(state, &context.identity, dialect, Binding::Rest, *events), None),
        Err(error) => (Binding::Rest.failure(dialect, &error), Some(error.kind)),
    };
    if operation == Operation::GetExtendedCard && failed.is_none() {
        response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("private, max-age=60"));
    }
    if let Some((name, value)) = call.activated() {
        response.headers_mut().insert(name, value);
    }
    let agent = call.hosted.as_ref().map(|hosted| hosted.name.clone());
    response::measure(response, Some(operation), agent, failed)
}

async fn run(
    call: &mut OperationCall<'_>,
    path: &Rest,
    context: &RequestContext,
    out: &mut Vec<u8>,
) -> Result<Reply, Error> {
    limits::depth(&call.state.options, "", &call.json)?;
    let query = percent::query(context.query())?;
    let parts = RestParts {
        task_id: path.task_id.as_deref(),
        config_id: path.config_id.as_deref().or_else(|| named_beside(call, &query)),
        tenant: None,
        query: &query,
        body: &call.json,
    };
    let request = decode_rest(call.dialect, call.operation, parts)?;
    if let Some(named) = request.tenant() {
        call.address = tenant::resolve(call.address.clone(), Some(named))?;
    }
    call.perform(request, out).await
}

/// Version 0.3 takes the configuration alone for the body, so that the name of a new one stands in the query.
fn named_beside<'a>(call: &OperationCall<'_>, query: &'a [(String, String)]) -> Option<&'a str> {
    if (call.dialect, call.operation) != (Dialect::V03Rest, Operation::CreatePushConfig) {
        return None;
    }
    let found =
        query.iter().find(|(name, value)| matches!(name.as_str(), "configId" | "config_id") && !value.is_empty());
    found.map(|(_, value)| value.as_str())
}
