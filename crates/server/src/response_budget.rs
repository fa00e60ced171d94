//! The response budget: memory and processor time of responses, shared fairly between callers.
//!
//! A slow client, which does not read, makes the server keep its responses. So every result is counted from before it is
//! rendered until the client has taken it, per caller and in total; a caller with too many bytes in flight waits for its
//! own clients to read (backpressure), and the other callers go on. Large results are also rendered a few at a time, off
//! the async threads, fairly between callers: one that asks for a thousand large pages delays only itself.
//!
//! Small results have a budget of their own, a quarter of a caller's, so that its events and short answers go on while a
//! large one takes its time.

use std::sync::Arc;
use std::thread::available_parallelism;

use switchboard_admission::{FairSemaphore, Limits, Permit, Share};
use switchboard_engine::CallerId;

use crate::{CallerIdentity, Options};

/// A result of up to so many bytes is small: it is rendered at once, and never waits for the results of other callers.
pub const SMALL: usize = 64 << 10;

/// Bytes of large results that a caller may have in flight even while the others use up the total.
const ALWAYS: usize = 1 << 20;

/// What a caller has in flight. One value per API key, beside its identity.
#[derive(Debug, Default)]
pub(crate) struct CallerUsage {
    small: Share,
    large: Share,
    rendering: Share,
}

/// The bytes of responses in flight, which can be read while the server runs.
pub struct ResponseBudget {
    small: Arc<FairSemaphore<CallerId>>,
    large: Arc<FairSemaphore<CallerId>>,
    rendering: Arc<FairSemaphore<CallerId>>,
}

/// Bytes of one response, given back as the client takes them; the last piece of it has all that is left.
pub(crate) type ReservedBytes = Permit<CallerId>;

/// A permit to read and render one large result; given back when dropped.
pub(crate) type RenderSlot = Permit<CallerId>;

impl ResponseBudget {
    pub(crate) fn new(options: &Options) -> Self {
        let per_caller = options.response_bytes_per_caller;
        let small = per_caller / 4;
        // The other half of the processor is for everything else.
        let rendering = available_parallelism().map_or(1, |cores| cores.get() / 2).max(1);
        Self {
            small: FairSemaphore::new(Limits { total: usize::MAX, per_key: small, always: usize::MAX }),
            large: FairSemaphore::new(Limits {
                total: options.response_bytes,
                per_key: per_caller - small,
                always: ALWAYS,
            }),
            rendering: FairSemaphore::new(Limits { total: rendering, per_key: (rendering / 2).max(1), always: 0 }),
        }
    }

    /// Bytes of responses that are rendered, or about to be, and not yet taken by their clients.
    pub fn bytes(&self) -> usize {
        self.small.taken() + self.large.taken()
    }

    /// Responses that wait until clients of their caller have read others, or for their turn to be rendered.
    pub fn waiting(&self) -> usize {
        self.small.waiting() + self.large.waiting() + self.rendering.waiting()
    }

    /// Reserves about so many bytes, if the budget has them at once.
    pub(crate) fn try_reserve(&self, identity: &CallerIdentity, bytes: usize) -> Option<ReservedBytes> {
        let (semaphore, share) = self.class(identity, bytes);
        semaphore.try_acquire(share, bytes)
    }

    /// Reserves about so many bytes as soon as the budget has them.
    pub(crate) async fn reserve(&self, identity: &CallerIdentity, bytes: usize) -> ReservedBytes {
        let (semaphore, share) = self.class(identity, bytes);
        semaphore.acquire(&identity.caller.id, share, bytes).await
    }

    /// Reserves bytes of a response that cannot wait, whatever the limits.
    pub(crate) fn force(&self, identity: &CallerIdentity, bytes: usize) -> ReservedBytes {
        let (semaphore, share) = self.class(identity, bytes);
        semaphore.force(share, bytes)
    }

    /// Waits for the caller's turn to have a large result rendered.
    pub(crate) async fn render_slot(&self, identity: &CallerIdentity) -> RenderSlot {
        self.rendering.acquire(&identity.caller.id, &identity.usage.rendering, 1).await
    }

    fn class<'a>(
        &'a self,
        identity: &'a CallerIdentity,
        bytes: usize,
    ) -> (&'a Arc<FairSemaphore<CallerId>>, &'a Share) {
        let usage = &identity.usage;
        if bytes <= SMALL { (&self.small, &usage.small) } else { (&self.large, &usage.large) }
    }
}
