//! The public card: negotiated by version, cached here and by whoever asks.

mod conditional;
pub(super) mod describe;

use std::sync::Arc;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, LAST_MODIFIED, VARY};
use http::{HeaderName, HeaderValue, Response, StatusCode};
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use switchboard_a2a::card::CardForm;
use switchboard_a2a::{Dialect, Error, ErrorKind, Version};
use switchboard_engine::{Address, Caller, Error as Refusal, Hosted};

use super::dialect::{Asked, VERSION};
use super::error;
use super::reply::{self, Binding};
use crate::{Body, CardDefault, Exchange, Measured, State};

/// Cards that have been written once, kept as long as they describe the same agents.
#[derive(Default)]
pub(crate) struct Shared {
    cards: Mutex<Vec<(Address, CardForm, Arc<Written>)>>,
}

/// A card as bytes.
struct Written {
    /// What it describes; a card of other agents is another card.
    agents: Vec<Arc<Hosted>>,
    body: Bytes,
    etag: HeaderValue,
}

/// Answers with the card of an agent, or of the one that answers at the root.
pub(super) fn answer(state: &State, address: &Address, exchange: &Exchange) -> Response<Body> {
    let asked = Asked::read(&exchange.headers, exchange.query());
    let form = form(&asked, state.options.card_default);
    let mut response = match written(state, address, form) {
        Ok(card) => found(state, exchange, form, &card),
        Err(error) => {
            let failed = Binding::Rest.failure(Dialect::V1, &error);
            return measured(failed, Some(error.kind));
        }
    };
    response.headers_mut().insert(VARY, HeaderValue::from_static("A2A-Version"));
    measured(response, None)
}

fn form(asked: &Asked, default: CardDefault) -> CardForm {
    match (asked.spoken(), default) {
        (Some(Version::V1), _) | (None, CardDefault::V1) => CardForm::V1,
        (Some(Version::V03), _) | (None, CardDefault::V03) => CardForm::V03,
        (None, CardDefault::Hybrid) => CardForm::Hybrid,
    }
}

fn found(state: &State, exchange: &Exchange, form: CardForm, card: &Written) -> Response<Body> {
    let fresh = conditional::is_fresh(&exchange.headers, &card.etag, state.started);
    let mut response = Response::new(if fresh { Body::empty() } else { Body::full(card.body.clone()) });
    if fresh {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    }
    let headers = response.headers_mut();
    if !fresh {
        headers.insert(CONTENT_TYPE, reply::JSON);
    }
    let version = match form {
        CardForm::V1 => Some(Version::V1),
        CardForm::V03 | CardForm::V03Rest => Some(Version::V03),
        CardForm::Hybrid => None,
    };
    if let Some(version) = version {
        headers.insert(HeaderName::from_static(VERSION), HeaderValue::from_static(version.as_str()));
    }
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("public, max-age=60"));
    headers.insert(ETAG, card.etag.clone());
    if let Ok(started) = HeaderValue::from_str(&httpdate::fmt_http_date(state.started)) {
        headers.insert(LAST_MODIFIED, started);
    }
    response
}

/// The card as bytes, written now if it was not yet.
fn written(state: &State, address: &Address, form: CardForm) -> Result<Arc<Written>, Error> {
    let directory = state.engine.directory();
    // The public card is the same for everybody, so it is found with nobody's limits.
    let (agents, is_server) = match directory.resolve(address, &Caller::local(), None) {
        Ok(hosted) => (vec![hosted], false),
        Err(Refusal::AgentNotFound { .. }) if *address == Address::Root => (directory.agents(), true),
        Err(refusal) => return Err(error::of(refusal)),
    };
    let mut cards = state.bindings.cards.lock();
    let place = cards.iter().position(|(of, in_form, _)| of == address && *in_form == form);
    if let Some(index) = place {
        let known = &cards[index].2;
        let same = known.agents.len() == agents.len()
            && known.agents.iter().zip(&agents).all(|(known, agent)| Arc::ptr_eq(known, agent));
        if same {
            return Ok(known.clone());
        }
        cards.swap_remove(index);
    }
    let card = match agents.as_slice() {
        [hosted] if !is_server => describe::agent(&state.options, address, hosted, false),
        many => describe::server(&state.options, many, false),
    };
    let body = Bytes::from(card.encode(form));
    let written = Arc::new(Written { etag: etag(&body), agents, body });
    cards.push((address.clone(), form, written.clone()));
    Ok(written)
}

fn etag(body: &[u8]) -> HeaderValue {
    let hash: [u8; 32] = Sha256::digest(body).into();
    let digits: String = hash[..12].iter().map(|byte| format!("{byte:02x}")).collect();
    HeaderValue::from_str(&format!("\"{digits}\"")).unwrap_or(HeaderValue::from_static("\"\""))
}

fn measured(mut response: Response<Body>, failed: Option<ErrorKind>) -> Response<Body> {
    let outcome = failed.map_or("ok", reply::outcome);
    response.extensions_mut().insert(Measured { method: "card", agent: None, outcome });
    response
}
