//! The card for known callers: private skills too. An open server knows nobody, so it has none.

use switchboard_a2a::card::CardForm;
use switchboard_a2a::{Dialect, Error, ErrorKind};
use switchboard_engine::Address;

use super::call::Call;
use super::card::describe;
use super::error;

/// Writes the card.
pub(super) fn answer(call: &mut Call<'_>, out: &mut Vec<u8>) -> Result<(), Error> {
    let directory = call.state.engine.directory();
    let caller = &call.identity.caller;
    let options = &call.state.options;
    let resolved = directory.resolve(&call.address, caller, None);
    let (form, not_offered) = match call.dialect {
        Dialect::V1 => (CardForm::V1, ErrorKind::UnsupportedOperation),
        Dialect::V03Rpc => (CardForm::V03, ErrorKind::ExtendedCardNotConfigured),
        Dialect::V03Rest => (CardForm::V03Rest, ErrorKind::ExtendedCardNotConfigured),
    };
    if options.open && (call.address == Address::Root || resolved.is_ok()) {
        let message = "there is no extended card: it is for callers with a key, and this server has no keys";
        return Err(Error::with_message(not_offered, message));
    }
    let hosted = resolved.map_err(error::of)?;
    let card = describe::agent(options, &call.address, &hosted, true);
    call.hosted = Some(hosted);
    out.extend_from_slice(&card.encode(form));
    Ok(())
}
