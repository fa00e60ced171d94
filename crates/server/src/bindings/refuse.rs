//! What the edge refuses, said in the body format of the address that was asked.

use http::{HeaderMap, Response};
use switchboard_a2a::jsonrpc::{self, RpcId};
use switchboard_a2a::{Dialect, Error, Operation};
use switchboard_engine::{Address, Caller, Error as Refusal};

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
pub(crate) fn nobody_at(state: &State, address: &Address, caller: &Caller) -> Option<Response<Body>> {
    if *address == Address::Root {
        return None;
    }
    let refusal = unknown_agent(state, address, caller)?;
    Some(Binding::Rest.failure(Dialect::V1, &refusal))
}

/// The error at an address where no agent is. Whether one is there does not depend on who asks; which other ones are is for
/// callers who may call them.
pub(super) fn unknown_agent(state: &State, address: &Address, caller: &Caller) -> Option<Error> {
    let directory = state.engine.directory();
    let for_all = directory.resolve(address, &Caller::local(), None).err()?;
    let for_caller = directory.resolve(address, caller, None).err();
    Some(match for_caller {
        Some(Refusal::AgentNotFound { asked, known }) if known.is_empty() && caller.id == state.anonymous.caller.id => {
            error::unnamed_agent(&asked)
        }
        refusal => error::of(refusal.unwrap_or(for_all)),
    })
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
