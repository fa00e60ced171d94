//! `/openapi.json`: what this server serves over HTTP, as an OpenAPI document. Only what works here is in it, as on the
//! cards; see `openapi/assemble.rs` for what that depends on.
//!
//! Version 3.1 has no word for the items of a stream. An event stream is described by the object of one event, which is
//! how 3.2 does it under `itemSchema`, and the JSON inside `data` by `contentSchema`.

mod assemble;

use std::sync::OnceLock;

use http::Response;
use switchboard_a2a::{Dialect, Error, ErrorKind};

use self::assemble::Features;
use super::cached_document::CachedDocument;
use super::response::{self, Binding};
use crate::{Body, RequestContext, RequestLabels, State};

/// The document, assembled on the first request: start-up need not wait for it.
#[derive(Default)]
pub(super) struct Description(OnceLock<Option<CachedDocument>>);

pub(super) fn answer(state: &State, context: &RequestContext) -> Response<Body> {
    let features = Features {
        webhooks: state.webhooks().is_some(),
        outbox: state.outbox.is_some(),
        callbacks: state.callbacks.is_some(),
    };
    let written = state.documents.openapi.0.get_or_init(|| match assemble::document(&state.options, features) {
        Ok(document) => Some(CachedDocument::new(document.to_string().into_bytes())),
        Err(error) => {
            tracing::error!(%error, "the parts of /openapi.json do not fit together, this is a bug");
            None
        }
    });
    let (mut response, outcome) = match written {
        Some(document) => (document.response(state, &context.headers), "ok"),
        None => {
            let failed = Error::new(ErrorKind::Internal);
            (Binding::Rest.failure(Dialect::V1, &failed), response::outcome(failed.kind))
        }
    };
    response.extensions_mut().insert(RequestLabels { method: "openapi", agent: None, outcome });
    response
}
