//! The card for known callers: private skills too, and only the agents the caller may use.

use switchboard_a2a::card::CardForm;
use switchboard_a2a::{Error, Version};
use switchboard_engine::{Address, Error as Refusal};

use super::call::Call;
use super::card::describe;
use super::error;

/// Writes the card.
pub(super) fn answer(call: &mut Call<'_>, out: &mut Vec<u8>) -> Result<(), Error> {
    let directory = call.state.engine.directory();
    let caller = &call.identity.caller;
    let options = &call.state.options;
    let card = match directory.resolve(&call.address, caller, None) {
        Ok(hosted) => {
            let card = describe::agent(options, &call.address, &hosted, true);
            call.hosted = Some(hosted);
            card
        }
        Err(Refusal::AgentNotFound { .. }) if call.address == Address::Root => {
            let mut agents = directory.agents();
            agents.retain(|hosted| caller.scopes.agents.allows(&hosted.name));
            describe::server(options, &agents, true)
        }
        Err(refusal) => return Err(error::of(refusal)),
    };
    let form = match call.dialect.version() {
        Version::V1 => CardForm::V1,
        Version::V03 => CardForm::V03,
    };
    out.extend_from_slice(&card.encode(form));
    Ok(())
}
