//! What all connections share.

use std::sync::Arc;
use std::time::SystemTime;

use switchboard_a2a::Error;
use switchboard_engine::{Caller, Engine};
use switchboard_webhooks::{Callbacks, Webhooks};

use crate::edge::address_slots::AddressSlots;
use crate::edge::guard::Guard;
use crate::edge::meter::Meter;
use crate::edge::request_id::RequestIds;
use crate::edge::stream_slots::StreamSlots;
use crate::responses::Responses;
use crate::{Authenticator, Identity, Options};

/// When it is worth coming back after a stop: a restart takes about as long.
const STOPPING_RETRY_MS: u64 = 5_000;

/// What new work is refused with while the server stops.
pub(crate) fn stopping() -> Error {
    Error::overloaded("the server is stopping", STOPPING_RETRY_MS)
}

/// What all connections share.
pub(crate) struct State {
    pub(crate) engine: Engine,
    pub(crate) options: Options,
    pub(crate) authenticator: Arc<dyn Authenticator>,
    /// Webhooks, if there are any; callers may set them only if they are enabled, see [`State::webhooks`].
    pub(crate) outbox: Option<Webhooks>,
    /// What other servers tell, if anybody here wants to know.
    pub(crate) callbacks: Option<Callbacks>,
    /// The places for open streams; a binding takes one per stream.
    pub(crate) streams: Arc<StreamSlots>,
    /// The slots for connections of one address.
    pub(crate) addresses: Arc<AddressSlots>,
    /// The bytes of responses in flight, and the slots for rendering large ones.
    pub(crate) responses: Arc<Responses>,
    /// When the server began, for `Last-Modified`.
    pub(crate) started: SystemTime,
    /// What the bindings keep between requests.
    pub(crate) bindings: crate::bindings::Shared,
    pub(crate) guard: Guard,
    pub(crate) meter: Meter,
    pub(crate) request_ids: RequestIds,
    /// The one caller of a server that runs open.
    pub(crate) local: Arc<Identity>,
    /// Everybody on a public route who shows no key.
    pub(crate) anonymous: Arc<Identity>,
}

impl State {
    pub(crate) fn new(engine: Engine, options: Options, authenticator: Arc<dyn Authenticator>) -> Self {
        Self {
            streams: Arc::new(StreamSlots::new(options.streams, options.streams_per_caller)),
            addresses: Arc::new(AddressSlots::new(&options)),
            responses: Arc::new(Responses::new(&options)),
            started: SystemTime::now(),
            bindings: crate::bindings::Shared::default(),
            guard: Guard::new(&options),
            meter: Meter::default(),
            request_ids: RequestIds::new(),
            local: Arc::new(Identity::new(Caller::local())),
            anonymous: Arc::new(Identity::anonymous()),
            engine,
            options,
            authenticator,
            outbox: None,
            callbacks: None,
        }
    }

    /// Webhooks, where callers may set them.
    pub(crate) fn webhooks(&self) -> Option<&Webhooks> {
        self.outbox.as_ref().filter(|webhooks| webhooks.is_enabled())
    }
}
