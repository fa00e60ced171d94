//! The extended card, for authenticated callers: private skills too. An open server has no keys and so no such card.

use switchboard_a2a::card::CardFormat;
use switchboard_a2a::{Dialect, Error, ErrorKind};
use switchboard_engine::Address;

use super::card::{self, describe};
use super::error::from_engine;
use super::operation::{OperationCall, Reply};

pub(super) fn answer(call: &mut OperationCall<'_>, out: &mut Vec<u8>) -> Result<Reply, Error> {
    let directory = call.state.engine.directory();
    let caller = &call.identity.caller;
    let options = &call.state.options;
    let resolved = directory.resolve(&call.address, caller, None);
    if options.open && (call.address == Address::Root || resolved.is_ok()) {
        let not_offered = match call.dialect {
            Dialect::V1 => ErrorKind::UnsupportedOperation,
            Dialect::V03Rpc | Dialect::V03Rest => ErrorKind::ExtendedCardNotConfigured,
        };
        let message = "there is no extended card: it is for callers with a key, and this server has no keys";
        return Err(Error::with_message(not_offered, message));
    }
    let hosted = resolved.map_err(from_engine)?;
    let card = describe::agent(call.state, &call.address, &hosted, true);
    call.hosted = Some(hosted);
    out.extend_from_slice(&card.encode(form(call.dialect)));
    Ok(Reply::Written)
}

/// Writes the card that the caller may have: this one, or else the public one of the address.
pub(super) fn answer_or_public(call: &mut OperationCall<'_>, out: &mut Vec<u8>) -> Result<Reply, Error> {
    if answer(call, out).is_err() {
        call.hosted = Some(card::write(call.state, &call.address, form(call.dialect), &call.identity.caller, out)?);
    }
    Ok(Reply::Written)
}

fn form(dialect: Dialect) -> CardFormat {
    match dialect {
        Dialect::V1 => CardFormat::V1,
        Dialect::V03Rpc => CardFormat::V03,
        Dialect::V03Rest => CardFormat::V03Rest,
    }
}
