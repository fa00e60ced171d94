//! The public agent card: negotiated by version, cached here and by clients.

pub(super) mod describe;

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use bytes::Bytes;
use http::header::VARY;
use http::{HeaderName, HeaderValue, Response};
use parking_lot::RwLock;
use switchboard_a2a::card::CardFormat;
use switchboard_a2a::{Dialect, Error, Version};
use switchboard_engine::{Address, Caller, Hosted, Served};

use super::agent_at::agent_at;
use super::cached_document::CachedDocument;
use super::dialect::{RequestedVersion, VERSION};
use super::error::from_engine;
use super::rejection::unknown_agent;
use super::response::{self, Binding};
use crate::{Body, RequestContext, RequestLabels, State};

/// Encoded cards, kept as long as they describe the same agent.
#[derive(Default)]
pub(super) struct Cards(RwLock<HashMap<(Address, CardFormat), Arc<Written>>>);

struct Written {
    /// What it describes; another one once that was replaced. The card keeps no agent that was removed.
    served: Weak<Served>,
    document: CachedDocument,
}

impl Cards {
    /// The card, if it is there and describes what is served.
    fn get(&self, key: &(Address, CardFormat), served: &Arc<Served>) -> Option<Arc<Written>> {
        let cards = self.0.read();
        // While there is a weak pointer to it, nothing else gets its address.
        let known = cards.get(key).filter(|known| Weak::as_ptr(&known.served) == Arc::as_ptr(served));
        known.cloned()
    }

    /// Keeps a card, and no longer those of agents that are gone or were replaced.
    fn keep(&self, key: (Address, CardFormat), card: Arc<Written>) {
        let mut cards = self.0.write();
        cards.retain(|_, known| known.served.strong_count() > 0);
        cards.insert(key, card);
    }
}

/// Answers with the card of an agent, or of the one that answers at the root.
pub(super) fn answer(state: &State, address: &Address, context: &RequestContext) -> Response<Body> {
    let requested = RequestedVersion::read(&context.headers, context.uri.query());
    let form = match requested.supported() {
        Some(Version::V1) => CardFormat::V1,
        Some(Version::V03) => CardFormat::V03,
        None => state.options.card_default,
    };
    let card = match requested.ambiguity() {
        Some(error) => Err(error),
        None => written(state, address, form, &context.identity.caller),
    };
    let (mut response, outcome) = match card {
        Ok((_, card)) => (found(state, context, form, &card), "ok"),
        Err(error) => (Binding::Rest.failure(Dialect::V1, &error), response::outcome(error.kind)),
    };
    response.body_mut().label(RequestLabels { method: "card", agent: None, outcome });
    response
}

/// The card's agent, and its bytes for another response.
pub(super) fn public(
    state: &State,
    address: &Address,
    form: CardFormat,
    caller: &Caller,
) -> Result<(Arc<Hosted>, Bytes), Error> {
    let (hosted, card) = written(state, address, form, caller)?;
    Ok((hosted, card.document.body.clone()))
}

fn found(state: &State, context: &RequestContext, form: CardFormat, card: &Written) -> Response<Body> {
    let mut response = card.document.response(state, &context.headers);
    response.headers_mut().insert(VARY, HeaderValue::from_static("A2A-Version"));
    let version = match form {
        CardFormat::V1 => Some(Version::V1),
        CardFormat::V03 | CardFormat::V03Rest => Some(Version::V03),
        CardFormat::Hybrid => None,
    };
    if let Some(version) = version {
        let value = HeaderValue::from_static(version.as_str());
        response.headers_mut().insert(HeaderName::from_static(VERSION), value);
    }
    response
}

/// The agent and its card as bytes, encoded now if it was not yet.
fn written(
    state: &State,
    address: &Address,
    form: CardFormat,
    caller: &Caller,
) -> Result<(Arc<Hosted>, Arc<Written>), Error> {
    let (directory, cards) = (state.engine.directory(), &state.documents.cards);
    // The public card does not depend on the caller, so it is resolved without a caller's scopes. Where no agent answers
    // at the root there is no card either: its interfaces would not work, and a client of a card for many agents would
    // reach one of them by chance.
    let refused = |refusal| unknown_agent(state, address, caller).unwrap_or_else(|| from_engine(refusal));
    let hosted = agent_at(directory.as_ref(), address, &Caller::local()).map_err(refused)?;
    let served = hosted.served();
    let key = (address.clone(), form);
    if let Some(known) = cards.get(&key, &served) {
        return Ok((hosted, known));
    }
    let card = describe::agent(state, address, &served, false);
    let document = CachedDocument::new(card.encode(form));
    let written = Arc::new(Written { served: Arc::downgrade(&served), document });
    cards.keep(key, Arc::clone(&written));
    Ok((hosted, written))
}
