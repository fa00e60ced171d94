//! JSON-RPC: the method names the version, the result stands in an envelope, and most errors are answers with status 200.

use std::pin::pin;
use std::sync::Arc;

use bytes::Bytes;
use http::Response;
use switchboard_a2a::jsonrpc::{self, Envelope, RpcId};
use switchboard_a2a::{Dialect, Error, ErrorKind, Operation, Request, decode_params};
use switchboard_engine::Address;

use super::dialect::{self, RequestedVersion};
use super::operation::{OperationCall, until_revoked};
use super::render::Rendered;
use super::response::{self, Binding};
use super::{limits, percent, tenant};
use crate::{Body, RequestContext, State};

pub(super) async fn answer(state: &Arc<State>, address: Address, mut context: RequestContext) -> Response<Body> {
    let requested = RequestedVersion::read(&context.headers, context.uri.query());
    let body = std::mem::take(&mut context.body);
    let envelope = match jsonrpc::parse(&body) {
        Ok(envelope) => envelope,
        Err(rejected) => {
            let dialect = dialect::of_unknown_method("", &requested);
            return refused(None, dialect, rejected.id, &rejected.error);
        }
    };
    let Some((version, operation)) = Operation::from_method(&envelope.method) else {
        let named: String = envelope.method.chars().take(80).collect();
        let error = Error::with_message(ErrorKind::MethodNotFound, format!("Method not found: {named}"));
        return refused(None, dialect::of_unknown_method(&named, &requested), envelope.id, &error);
    };
    let dialect = match dialect::of_method(version, operation, &requested, state.options.strict_version) {
        Ok(dialect) => dialect,
        Err((dialect, error)) => return refused(Some(operation), dialect, envelope.id, &error),
    };
    let request = decoded(state, dialect, operation, &envelope);
    let params = envelope.params.map(|params| params.get().as_bytes());
    let json = params.map_or(Bytes::from_static(b"{}"), |params| body.slice_ref(params));
    let id = envelope.id;
    drop(body);
    let mut call = OperationCall::new(state, address, dialect, operation, &context, json);
    jsonrpc::write_result_prefix(&id, &mut call.out);
    let result = {
        let running = pin!(run(&mut call, context.uri.query(), request));
        until_revoked(&context.identity, running).await
    };
    response::finish(call, Binding::Rpc(id), result)
}

/// The decoded request, or what is wrong with it.
fn decoded(state: &State, dialect: Dialect, operation: Operation, envelope: &Envelope<'_>) -> Result<Request, Error> {
    let json = envelope.params.map_or("{}", |params| params.get()).as_bytes();
    limits::depth(&state.options, "params", json)?;
    let request = decode_params(dialect, operation, envelope.params)?;
    if envelope.is_notification {
        return Err(jsonrpc::notification_refused());
    }
    Ok(request)
}

async fn run(
    call: &mut OperationCall<'_>,
    query: Option<&str>,
    request: Result<Request, Error>,
) -> Result<Rendered, Error> {
    let request = request?;
    if let Some(query) = query {
        let pairs = percent::query(Some(query))?;
        let named = pairs.iter().find(|(key, _)| key == "tenant").map(|(_, value)| value.as_str());
        call.address = tenant::resolve(call.address.clone(), named)?;
    }
    call.answer(request).await
}

fn refused(operation: Option<Operation>, dialect: Dialect, id: RpcId, error: &Error) -> Response<Body> {
    response::measure(Binding::Rpc(id).failure(dialect, error), operation, None, Some(error.kind))
}
