//! What all connections share, and the switch from a server that runs open to one that needs keys.

use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use switchboard_a2a::Error;
use switchboard_engine::{Caller, Engine};
use switchboard_webhooks::{CallbackReceiver, Webhooks};

use crate::edge::address_slots::AddressSlots;
use crate::edge::request_guard::RequestGuard;
use crate::edge::request_id::RequestIds;
use crate::edge::request_metrics::RequestMetrics;
use crate::edge::router::Router;
use crate::edge::stream_slots::StreamSlots;
use crate::response_budget::ResponseBudget;
use crate::{Authenticator, CallerIdentity, Options};

/// When it is worth coming back after a stop: a restart takes about as long.
const STOPPING_RETRY_MS: u64 = 5_000;

/// What new work is refused with during a graceful shutdown.
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
    /// The receiver of other servers' push notifications, if a task here waits for any.
    pub(crate) callbacks: Option<CallbackReceiver>,
    /// Finds endpoints.
    pub(crate) router: Arc<Router>,
    /// The slots for open streams; a binding takes one per stream.
    pub(crate) streams: Arc<StreamSlots>,
    /// The slots for connections of one address.
    pub(crate) addresses: Arc<AddressSlots>,
    /// The bytes of responses in flight, and the slots for rendering large ones.
    pub(crate) responses: Arc<ResponseBudget>,
    /// When the server began, for `Last-Modified`.
    pub(crate) started: SystemTime,
    pub(crate) documents: crate::bindings::DocumentCache,
    pub(crate) guard: RequestGuard,
    pub(crate) request_metrics: RequestMetrics,
    pub(crate) request_ids: RequestIds,
    /// The one caller of a server that runs open.
    pub(crate) local: Arc<CallerIdentity>,
    /// The caller on a public route who shows no key.
    pub(crate) anonymous: Arc<CallerIdentity>,
}

impl State {
    pub(crate) fn new(engine: Engine, options: Options, authenticator: Arc<dyn Authenticator>) -> Self {
        Self {
            streams: Arc::new(StreamSlots::new(options.streams, options.streams_per_caller)),
            addresses: Arc::new(AddressSlots::new(&options)),
            responses: Arc::new(ResponseBudget::new(&options)),
            started: SystemTime::now(),
            documents: crate::bindings::DocumentCache::default(),
            guard: RequestGuard::new(&options),
            request_metrics: RequestMetrics::default(),
            request_ids: RequestIds::new(),
            local: Arc::new(CallerIdentity::new(Caller::local())),
            anonymous: Arc::new(CallerIdentity::anonymous()),
            engine,
            options,
            authenticator,
            router: Arc::default(),
            outbox: None,
            callbacks: None,
        }
    }

    /// Webhooks, where callers may set them.
    pub(crate) fn webhooks(&self) -> Option<&Webhooks> {
        self.outbox.as_ref().filter(|webhooks| webhooks.is_enabled())
    }
}

/// The state that requests are served from now. A server that runs open needs keys from the moment that the first one
/// exists; from then on another state serves, with other guards and other cards, on the same connections.
pub(crate) struct CurrentState {
    first: Arc<State>,
    /// Once an open server needs keys.
    keyed: OnceLock<Arc<State>>,
}

impl CurrentState {
    pub(crate) fn new(state: State) -> Self {
        Self { first: Arc::new(state), keyed: OnceLock::new() }
    }

    /// The state that serves a request which comes now.
    pub(crate) fn get(&self) -> &Arc<State> {
        let first = &self.first;
        if !first.options.open || !first.local.revoked.is_cancelled() {
            return first;
        }
        self.keyed.get_or_init(|| {
            let options = Options { open: false, ..first.options.clone() };
            Arc::new(State {
                // Streams that are still open keep their slots, and responses in flight their bytes.
                streams: Arc::clone(&first.streams),
                responses: Arc::clone(&first.responses),
                addresses: Arc::clone(&first.addresses),
                outbox: first.outbox.clone(),
                callbacks: first.callbacks.clone(),
                router: Arc::clone(&first.router),
                ..State::new(first.engine.clone(), options, Arc::clone(&first.authenticator))
            })
        })
    }
}
