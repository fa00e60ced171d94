//! Which state a request is served from. A server that runs open needs keys from the moment that the first one exists;
//! from then on another state serves, with other guards and other cards, on the same connections.

use std::sync::{Arc, OnceLock};

use crate::{Options, State};

/// The state of the server, now.
pub(crate) struct Door {
    first: Arc<State>,
    /// Once an open server needs keys.
    keyed: OnceLock<Arc<State>>,
}

impl Door {
    pub(crate) fn new(state: State) -> Self {
        Self { first: Arc::new(state), keyed: OnceLock::new() }
    }

    /// The state that serves a request which comes now.
    pub(crate) fn state(&self) -> &Arc<State> {
        let first = &self.first;
        if !first.options.open || !first.local.revoked.is_cancelled() {
            return first;
        }
        self.keyed.get_or_init(|| {
            let options = Options { open: false, ..first.options.clone() };
            let state = State::new(first.engine.clone(), options, Arc::clone(&first.authenticator));
            // Streams that are still to end have their slots until then, and responses in flight their bytes.
            let (streams, responses) = (Arc::clone(&first.streams), Arc::clone(&first.responses));
            Arc::new(State {
                streams,
                responses,
                addresses: Arc::clone(&first.addresses),
                outbox: first.outbox.clone(),
                callbacks: first.callbacks.clone(),
                ..state
            })
        })
    }
}
