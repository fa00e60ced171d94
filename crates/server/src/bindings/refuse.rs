//! What the edge refuses, said in the body format of the address that was asked.

use http::{HeaderMap, Response};
use switchboard_a2a::jsonrpc::{self, RpcId};
use switchboard_a2a::{Dialect, Error, Operation};
use switchboard_engine::{Address, Caller};

use super::dialect::{self, Asked};
use super::error;
use super::reply::{self, Binding};
use super::routes::{Route, Target};
use crate::{Body, State};

/// The response to a request that does not get as far as a binding. With a body the answer finds its id and version.
pub(crate) fn refuse(
    state: &State,
    route: &Route,
    headers: &HeaderMap,
    body: Option<&[u8]>,
    error: &Error,
) -> Response<Body> {
    let asked = Asked::read(headers, None);
    let (binding, dialect, operation) = match &route.target {
        Target::Rpc { .. } => {
            let (id, dialect, operation) = envelope(body, &asked);
            (Binding::Rpc(id), dialect, operation)
        }
        Target::Rest(path) => {
            let chosen = dialect::of_path(path.prefixed, &asked, state.options.strict_version);
            let dialect = chosen.unwrap_or_else(|(dialect, _)| dialect);
            (Binding::Rest, dialect, Some(path.operation))
        }
        Target::Card { .. } | Target::OpenApi => (Binding::Rest, Dialect::V1, None),
    };
    reply::measure(binding.failure(dialect, error), operation, None, Some(error.kind))
}

/// The response at the address of an agent that does not exist: with which method it was asked is no matter then.
pub(crate) fn nobody_at(state: &State, address: &Address) -> Option<Response<Body>> {
    if *address == Address::Root {
        return None;
    }
    // Which agents exist is public, so it does not matter who asks.
    let refusal = state.engine.directory().resolve(address, &Caller::local(), None).err()?;
    Some(Binding::Rest.failure(Dialect::V1, &error::of(refusal)))
}

fn envelope(body: Option<&[u8]>, asked: &Asked) -> (RpcId, Dialect, Option<Operation>) {
    let (id, method) = match body.map(jsonrpc::parse) {
        Some(Ok(envelope)) => (envelope.id, envelope.method.into_owned()),
        Some(Err(rejected)) => (rejected.id, String::new()),
        None => (RpcId::NULL, String::new()),
    };
    match Operation::from_method(&method) {
        Some((version, operation)) => (id, version.rpc_dialect(), Some(operation)),
        None => (id, dialect::of_unknown_method(&method, asked), None),
    }
}
