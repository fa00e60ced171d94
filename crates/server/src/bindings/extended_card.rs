//! The extended card, for authenticated callers: private skills too. An open server has no keys and so no such card.

use std::sync::Arc;

use bytes::Bytes;
use switchboard_a2a::card::{AgentCard, CardFormat};
use switchboard_a2a::{Dialect, Error, ErrorKind, Operation};
use switchboard_engine::{Address, Hosted};

use super::card::{self, describe};
use super::error::from_engine;
use super::operation::{OperationCall, Reply};

/// Writes the card. `GetCard` writes the one that the caller may have: this one, or else the public one of the address.
pub(super) fn answer(call: &mut OperationCall<'_>) -> Result<Reply, Error> {
    let form = form(call.dialect);
    let (hosted, json) = match extended(call) {
        Ok((hosted, card)) => (hosted, Bytes::from(card.encode(form))),
        Err(_) if call.operation == Operation::GetCard => {
            card::public(call.state, &call.address, form, &call.identity.caller)?
        }
        Err(error) => return Err(error),
    };
    call.out.extend_from_slice(&json);
    call.hosted = Some(hosted);
    Ok(Reply::Written)
}

fn extended(call: &OperationCall<'_>) -> Result<(Arc<Hosted>, AgentCard), Error> {
    let resolved = call.state.engine.directory().resolve(&call.address, &call.identity.caller, None);
    if call.state.options.open && (call.address == Address::Root || resolved.is_ok()) {
        let not_offered = match call.dialect {
            Dialect::V1 => ErrorKind::UnsupportedOperation,
            Dialect::V03Rpc | Dialect::V03Rest => ErrorKind::ExtendedCardNotConfigured,
        };
        let message = "there is no extended card: it is for callers with a key, and this server has no keys";
        return Err(Error::with_message(not_offered, message));
    }
    let hosted = resolved.map_err(from_engine)?.hosted;
    let card = describe::agent(call.state, &call.address, &hosted.served(), true);
    Ok((hosted, card))
}

fn form(dialect: Dialect) -> CardFormat {
    match dialect {
        Dialect::V1 => CardFormat::V1,
        Dialect::V03Rpc => CardFormat::V03,
        Dialect::V03Rest => CardFormat::V03Rest,
    }
}
