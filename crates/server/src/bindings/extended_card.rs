//! The extended card, for authenticated callers: private skills too. An open server has no keys and so no such card.

use std::sync::Arc;

use switchboard_a2a::card::{AgentCard, CardFormat};
use switchboard_a2a::{Dialect, Error, ErrorKind, Operation};
use switchboard_engine::{Address, Hosted};

use super::agent_at::agent_at;
use super::card::{self, describe};
use super::error::from_engine;
use super::operation::OperationCall;
use super::operation_result::{CardResult, OperationResult};

/// The card. `GetCard` is for the one that the caller may have: this one, or else the public one of the address.
pub(super) fn perform(call: &mut OperationCall<'_>) -> Result<OperationResult, Error> {
    let (hosted, card) = match extended(call) {
        Ok((hosted, card)) => (hosted, CardResult::Extended(Box::new(card))),
        Err(_) if call.operation == Operation::GetCard => {
            let form = form(call.dialect);
            let (hosted, json) = card::public(call.state, &call.address, form, &call.identity.caller)?;
            (hosted, CardResult::Public(json))
        }
        Err(error) => return Err(error),
    };
    call.hosted = Some(hosted);
    Ok(OperationResult::Card(card))
}

fn extended(call: &OperationCall<'_>) -> Result<(Arc<Hosted>, AgentCard), Error> {
    let found = agent_at(call.state.engine.directory().as_ref(), &call.address, &call.identity.caller);
    if call.state.options.open && (call.address == Address::Root || found.is_ok()) {
        let not_offered = match call.dialect {
            Dialect::V1 => ErrorKind::UnsupportedOperation,
            Dialect::V03Rpc | Dialect::V03Rest => ErrorKind::ExtendedCardNotConfigured,
        };
        let message = "there is no extended card: it is for callers with a key, and this server has no keys";
        return Err(Error::with_message(not_offered, message));
    }
    let hosted = found.map_err(from_engine)?;
    let card = describe::agent(call.state, &call.address, &hosted.served(), true);
    Ok((hosted, card))
}

/// The form of a card in a dialect.
pub(super) fn form(dialect: Dialect) -> CardFormat {
    match dialect {
        Dialect::V1 => CardFormat::V1,
        Dialect::V03Rpc => CardFormat::V03,
        Dialect::V03Rest => CardFormat::V03Rest,
    }
}
