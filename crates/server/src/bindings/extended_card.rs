//! The card for known callers: private skills too, and only the agents the caller may use. An open server knows nobody,
//! so it has none.

use switchboard_a2a::card::CardForm;
use switchboard_a2a::{Dialect, Error, ErrorKind};
use switchboard_engine::{Address, Error as Refusal};

use super::call::Call;
use super::card::describe;
use super::error;

/// Writes the card.
pub(super) fn answer(call: &mut Call<'_>, out: &mut Vec<u8>) -> Result<(), Error> {
    let directory = call.state.engine.directory();
    let caller = &call.identity.caller;
    let options = &call.state.options;
    call.hosted = match directory.resolve(&call.address, caller, None) {
        Ok(hosted) => Some(hosted),
        Err(Refusal::AgentNotFound { .. }) if call.address == Address::Root => None,
        Err(refusal) => return Err(error::of(refusal)),
    };
    let (form, not_offered) = match call.dialect {
        Dialect::V1 => (CardForm::V1, ErrorKind::UnsupportedOperation),
        Dialect::V03Rpc => (CardForm::V03, ErrorKind::ExtendedCardNotConfigured),
        Dialect::V03Rest => (CardForm::V03Rest, ErrorKind::ExtendedCardNotConfigured),
    };
    if options.open {
        let message = "there is no extended card: it is for callers with a key, and this server has no keys";
        return Err(Error::with_message(not_offered, message));
    }
    let card = match &call.hosted {
        Some(hosted) => describe::agent(options, &call.address, hosted, true),
        None => {
            let mut agents = directory.agents();
            agents.retain(|hosted| caller.scopes.agents.allows(&hosted.name));
            describe::server(options, &agents, true)
        }
    };
    out.extend_from_slice(&card.encode(form));
    Ok(())
}
