//! REST: the path names the operation, the status tells how it went, the body is the result itself.

use std::pin::pin;
use std::sync::Arc;

use http::Response;
use switchboard_a2a::{Dialect, Error, Operation, RestParts, decode_rest};

use super::dialect::{self, RequestedVersion};
use super::operation::{OperationCall, until_revoked};
use super::render::Rendered;
use super::response::{self, Binding};
use super::routes::Rest;
use super::{limits, percent};
use crate::{Body, RequestContext, State};

pub(super) async fn answer(state: &Arc<State>, path: Rest, mut context: RequestContext) -> Response<Body> {
    let requested = RequestedVersion::read(&context.headers, context.uri.query());
    let operation = path.operation;
    let dialect = match dialect::of_path(path.prefixed, &requested, state.options.strict_version) {
        Ok(dialect) => dialect,
        Err((dialect, error)) => {
            return response::measure(Binding::Rest.failure(dialect, &error), Some(operation), None, Some(error.kind));
        }
    };
    let body = std::mem::take(&mut context.body);
    let mut call = OperationCall::new(state, path.address.clone(), dialect, operation, &context, body);
    let result = {
        let running = pin!(run(&mut call, &path, &context));
        until_revoked(&context.identity, running).await
    };
    response::finish(call, Binding::Rest, result)
}

async fn run(call: &mut OperationCall<'_>, path: &Rest, context: &RequestContext) -> Result<Rendered, Error> {
    limits::depth(&call.state.options, "", &call.json)?;
    let query = percent::query(context.uri.query())?;
    let parts = RestParts {
        task_id: path.task_id.as_deref(),
        config_id: path.config_id.as_deref().or_else(|| config_id_of_query(call, &query)),
        tenant: None,
        query: &query,
        body: &call.json,
    };
    let request = decode_rest(call.dialect, call.operation, parts)?;
    call.answer(request).await
}

/// In version 0.3 the body is the configuration alone, so the id of a new one stands in the query.
fn config_id_of_query<'a>(call: &OperationCall<'_>, query: &'a [(String, String)]) -> Option<&'a str> {
    if (call.dialect, call.operation) != (Dialect::V03Rest, Operation::CreatePushConfig) {
        return None;
    }
    let is_id =
        |(name, value): &&(String, String)| matches!(name.as_str(), "configId" | "config_id") && !value.is_empty();
    query.iter().find(is_id).map(|(_, value)| value.as_str())
}
