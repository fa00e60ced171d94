//! The agent at an address, for what is about tasks that are there already. An agent that is removed gets nothing new, but
//! answers for its tasks until the last of them has ended.

use std::sync::Arc;

use switchboard_engine::{Address, Caller, Directory, Error, Hosted};

/// The agent that serves the address, or still serves its tasks there.
pub(super) fn agent_at(directory: &dyn Directory, address: &Address, caller: &Caller) -> Result<Arc<Hosted>, Error> {
    let refusal = match directory.resolve(address, caller, None) {
        Ok(resolved) => return Ok(resolved.hosted),
        Err(refusal) => refusal,
    };
    let (Address::Agent(name), Error::AgentNotFound { .. }) = (address, &refusal) else { return Err(refusal) };
    let is_shown = !name.is_own() && caller.scopes.agents.allows(name);
    is_shown.then(|| directory.draining(name)).flatten().ok_or(refusal)
}
