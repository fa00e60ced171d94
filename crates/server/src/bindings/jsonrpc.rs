//! JSON-RPC: the method names the version, the answer stands in an envelope, errors are answers too.

use std::pin::pin;
use std::sync::Arc;

use bytes::Bytes;
use http::Response;
use switchboard_a2a::jsonrpc::{self, Envelope, RpcId};
use switchboard_a2a::{Dialect, Error, ErrorKind, Operation, decode_params};
use switchboard_engine::Address;

use super::call::{Call, Outcome, while_known};
use super::dialect::{self, Asked};
use super::extensions::Declared;
use super::reply::{self, Binding};
use super::{limits, percent, sse, tenant};
use crate::{Body, Exchange, State};

/// Answers one request.
pub(super) async fn answer(state: &Arc<State>, address: Address, exchange: Exchange) -> Response<Body> {
    let asked = Asked::read(&exchange.headers, exchange.query());
    let envelope = match jsonrpc::parse(&exchange.body) {
        Ok(envelope) => envelope,
        Err(rejected) => {
            let dialect = dialect::of_unknown_method("", &asked);
            return refused(None, dialect, rejected.id, &rejected.error);
        }
    };
    let Some((version, operation)) = Operation::from_method(&envelope.method) else {
        let named: String = envelope.method.chars().take(80).collect();
        let error = Error::with_message(ErrorKind::MethodNotFound, format!("Method not found: {named}"));
        return refused(None, dialect::of_unknown_method(&named, &asked), envelope.id, &error);
    };
    match dialect::of_method(version, operation, &asked, state.options.strict_version) {
        Ok(dialect) => perform(state, address, &exchange, envelope, operation, dialect).await,
        Err((dialect, error)) => refused(Some(operation), dialect, envelope.id, &error),
    }
}

async fn perform(
    state: &Arc<State>,
    address: Address,
    exchange: &Exchange,
    envelope: Envelope<'_>,
    operation: Operation,
    dialect: Dialect,
) -> Response<Body> {
    let json = envelope.params.map_or("{}", |params| params.get()).as_bytes();
    let mut call = Call {
        state,
        address,
        dialect,
        operation,
        identity: &exchange.identity,
        headers: &exchange.headers,
        json,
        declared: Declared::read(&exchange.headers),
        hosted: None,
        reserved: None,
        sent_files_once: false,
    };
    let mut out = Vec::with_capacity(512);
    jsonrpc::write_result_prefix(&envelope.id, &mut out);
    let outcome = {
        let running = pin!(run(&mut call, exchange.query(), &envelope, &mut out));
        while_known(&exchange.identity, running).await
    };
    let binding = Binding::Rpc(envelope.id);
    let (mut response, failed) = match outcome {
        Ok(Outcome::Written) => {
            out.push(b'}');
            (binding.success(dialect, Body::full(out).counted(call.reserved.take())), None)
        }
        Ok(Outcome::Large(mut pieces)) => {
            pieces.push_back(Bytes::from_static(b"}"));
            (binding.success(dialect, Body::pieces(pieces).counted(call.reserved.take())), None)
        }
        Ok(Outcome::Nothing) => {
            out.extend_from_slice(b"null}");
            (binding.success(dialect, Body::full(out)), None)
        }
        Ok(Outcome::Events(events)) => (sse::response(state, &exchange.identity, dialect, binding, *events), None),
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
    reply::measure(response, Some(operation), agent, failed)
}

async fn run(
    call: &mut Call<'_>,
    query: Option<&str>,
    envelope: &Envelope<'_>,
    out: &mut Vec<u8>,
) -> Result<Outcome, Error> {
    limits::depth(&call.state.options, "params", call.json)?;
    let request = decode_params(call.dialect, call.operation, envelope.params)?;
    if envelope.is_notification {
        return Err(jsonrpc::notification_refused());
    }
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
    reply::measure(Binding::Rpc(id).failure(dialect, error), operation, None, Some(error.kind))
}
