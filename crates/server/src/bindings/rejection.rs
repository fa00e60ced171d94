//! Rejections by the edge, in the body format of the binding that was called.

use http::{HeaderMap, Response};
use switchboard_a2a::jsonrpc::{self, RpcId};
use switchboard_a2a::{Dialect, Error, ErrorKind, Operation};
use switchboard_engine::{Address, Caller, Error as Refusal};

use super::agent_at::agent_at;
use super::dialect::{self, RequestedVersion};
use super::error::from_engine;
use super::response::{self, Binding};
use super::routes::Route;
use crate::{Body, State};

/// The response to a request that does not reach its binding. With a body it has the request's id and version.
pub(crate) fn reject(
    state: &State,
    route: &Route,
    headers: &HeaderMap,
    body: Option<&[u8]>,
    error: &Error,
) -> Response<Body> {
    let requested = RequestedVersion::read(headers, None);
    let (binding, dialect, operation) = match route {
        Route::Rpc(_) => {
            let (id, dialect, operation) = envelope(body, &requested);
            (Binding::Rpc(id), dialect, operation)
        }
        Route::Rest(path) => {
            let chosen = dialect::of_path(path.prefixed, &requested, state.options.strict_version);
            let dialect = chosen.unwrap_or_else(|(dialect, _)| dialect);
            (Binding::Rest, dialect, Some(path.operation))
        }
        Route::Card(_) | Route::OpenApi => (Binding::Rest, Dialect::V1, None),
    };
    response::measure(binding.failure(dialect, error), operation, None, Some(error.kind))
}

/// The response at the address of an agent that does not exist, whatever the method.
pub(crate) fn no_agent_at(state: &State, address: &Address, caller: &Caller) -> Option<Response<Body>> {
    if *address == Address::Root {
        return None;
    }
    let refusal = unknown_agent(state, address, caller)?;
    Some(Binding::Rest.failure(Dialect::V1, &refusal))
}

/// The error at an address without an agent. Whether there is one does not depend on the caller; the other agents are only
/// listed to callers in whose scope they are.
pub(super) fn unknown_agent(state: &State, address: &Address, caller: &Caller) -> Option<Error> {
    let directory = state.engine.directory();
    let for_all = agent_at(directory.as_ref(), address, &Caller::local()).err()?;
    let for_caller = agent_at(directory.as_ref(), address, caller).err();
    Some(match for_caller {
        Some(Refusal::AgentNotFound { asked, known }) if known.is_empty() && caller.id == state.anonymous.caller.id => {
            // A caller without a key gets no list of agents.
            let message = match &*asked {
                "" => "no agent is the default here; name one: a key shows those it may call".to_owned(),
                asked => format!("no agent {asked:?} here; a key shows those it may call"),
            };
            Error::with_message(ErrorKind::AgentNotFound, message)
        }
        refusal => from_engine(refusal.unwrap_or(for_all)),
    })
}

fn envelope(body: Option<&[u8]>, requested: &RequestedVersion) -> (RpcId, Dialect, Option<Operation>) {
    let (id, method) = match body.map(jsonrpc::parse) {
        Some(Ok(envelope)) => (envelope.id, envelope.method.into_owned()),
        Some(Err(rejected)) => (rejected.id, String::new()),
        None => (RpcId::NULL, String::new()),
    };
    match Operation::from_method(&method) {
        Some((version, operation)) => (id, version.rpc_dialect(), Some(operation)),
        None => (id, dialect::of_unknown_method(&method, requested), None),
    }
}
