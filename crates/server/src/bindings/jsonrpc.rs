//! JSON-RPC: the method names the version, the answer stands in an envelope, errors are answers too.

use std::pin::pin;
use std::sync::Arc;

use bytes::Bytes;
use http::Response;
use switchboard_a2a::jsonrpc::{self, Envelope, RpcId};
use switchboard_a2a::{Dialect, Error, ErrorKind, Operation, Request, decode_params};
use switchboard_engine::Address;

use super::dialect::{self, RequestedVersion};
use super::extensions::DeclaredExtensions;
use super::operation::{OperationCall, Reply, until_revoked};
use super::response::{self, Binding};
use super::{limits, percent, sse, tenant};
use crate::{Body, RequestContext, State};

/// Answers one request.
pub(super) async fn answer(state: &Arc<State>, address: Address, mut context: RequestContext) -> Response<Body> {
    let requested = RequestedVersion::read(&context.headers, context.query());
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
    match dialect::of_method(version, operation, &requested, state.options.strict_version) {
        Ok(dialect) => {
            let request = decoded(state, dialect, operation, &envelope);
            let params = envelope.params.map(|params| params.get().as_bytes());
            let json = params.map_or(Bytes::from_static(b"{}"), |params| body.slice_ref(params));
            let id = envelope.id;
            drop(body);
            perform(state, address, &context, (id, request, json), operation, dialect).await
        }
        Err((dialect, error)) => refused(Some(operation), dialect, envelope.id, &error),
    }
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

async fn perform(
    state: &Arc<State>,
    address: Address,
    context: &RequestContext,
    (id, request, json): (RpcId, Result<Request, Error>, Bytes),
    operation: Operation,
    dialect: Dialect,
) -> Response<Body> {
    let mut call = OperationCall {
        state,
        address,
        dialect,
        operation,
        identity: &context.identity,
        headers: &context.headers,
        json,
        declared: DeclaredExtensions::read(&context.headers),
        hosted: None,
        reserved: None,
        sent_files_once: false,
    };
    let mut out = Vec::with_capacity(512);
    jsonrpc::write_result_prefix(&id, &mut out);
    let outcome = {
        let running = pin!(run(&mut call, context.query(), request, &mut out));
        until_revoked(&context.identity, running).await
    };
    let binding = Binding::Rpc(id);
    let (mut response, failed) = match outcome {
        Ok(Reply::Written) => {
            out.push(b'}');
            (binding.success(dialect, Body::full(out).counted(call.reserved.take())), None)
        }
        Ok(Reply::Large(mut pieces)) => {
            pieces.push_back(Bytes::from_static(b"}"));
            (binding.success(dialect, Body::pieces(pieces).counted(call.reserved.take())), None)
        }
        Ok(Reply::Nothing) => {
            out.extend_from_slice(b"null}");
            (binding.success(dialect, Body::full(out)), None)
        }
        Ok(Reply::Events(events)) => (sse::response(state, &context.identity, dialect, binding, *events), None),
        // v0.3 readers of a stream take nothing but a stream.
        Err(error) if dialect == Dialect::V03Rpc && operation.is_streaming() && is_answer(&error) => {
            (sse::failure(dialect, binding, &error), Some(error.kind))
        }
        Err(error) => (binding.failure(dialect, &error), Some(error.kind)),
    };
    if let Some((name, value)) = call.activated() {
        response.headers_mut().insert(name, value);
    }
    let agent = call.hosted.as_ref().map(|hosted| hosted.name.clone());
    response::measure(response, Some(operation), agent, failed)
}

async fn run(
    call: &mut OperationCall<'_>,
    query: Option<&str>,
    request: Result<Request, Error>,
    out: &mut Vec<u8>,
) -> Result<Reply, Error> {
    let request = request?;
    if let Some(query) = query {
        let pairs = percent::query(Some(query))?;
        let named = pairs.iter().find(|(key, _)| key == "tenant").map(|(_, value)| value.as_str());
        call.address = tenant::resolve(call.address.clone(), named)?;
    }
    if let Some(named) = request.tenant() {
        call.address = tenant::resolve(call.address.clone(), Some(named))?;
    }
    call.perform(request, out).await
}

/// Whether HTTP lets the error through as an answer.
fn is_answer(error: &Error) -> bool {
    error.kind.rpc_http_status() == 200 && error.kind != ErrorKind::AgentNotFound
}

fn refused(operation: Option<Operation>, dialect: Dialect, id: RpcId, error: &Error) -> Response<Body> {
    response::measure(Binding::Rpc(id).failure(dialect, error), operation, None, Some(error.kind))
}
