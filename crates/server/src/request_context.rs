//! One request on its way from the edge to a binding, and what the binding tells the metrics about it.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Uri};
use switchboard_engine::AgentName;

use crate::Identity;

/// A request that has passed every guard: its caller is known and its body is read.
pub(crate) struct RequestContext {
    /// As it was sent; its route is found already.
    pub(crate) uri: Uri,
    pub(crate) headers: HeaderMap,
    /// Empty if there is none; within the limit, and of a JSON media type if not empty.
    pub(crate) body: Bytes,
    /// Who asks. On public routes perhaps nobody in particular.
    pub(crate) identity: Arc<Identity>,
}

impl RequestContext {
    /// What follows the question mark, percent-encoded.
    pub(crate) fn query(&self) -> Option<&str> {
        self.uri.query()
    }
}

/// What the metrics call a request. A binding puts it into the extensions of its response.
#[derive(Clone, Debug)]
pub(crate) struct RequestLabels {
    /// The operation's v1.0 name, `card`, `openapi`, or `unknown`.
    pub(crate) method: &'static str,
    /// The agent that was asked, once it is known to exist.
    pub(crate) agent: Option<AgentName>,
    /// `ok`, or the reason of the error in lower case.
    pub(crate) outcome: &'static str,
}
