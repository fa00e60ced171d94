//! The body of a response: in pieces as they arrive, or collected up to a limit. Once the head is there the call has
//! succeeded: a body that is too long, too slow or truncated changes nothing about the status.

use std::fmt;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::time::{Instant, timeout_at};

use crate::error::BodyError;
use crate::receive_budget::BodyBudget;

/// A year, for timeouts that the clock cannot count to.
const LONGEST_TIMEOUT: Duration = Duration::from_secs(365 * 24 * 3600);

/// How a collected body ended; after [`crate::Egress::send`] it is found in the extensions of the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BodyEnd {
    /// All of it is there.
    Complete,
    /// There was more than was asked for.
    Cut,
    /// The connection ended in the middle.
    Broken,
    /// The time was up in the middle.
    Late,
}

/// The body of a response that is still arriving. It holds a connection slot; dropping it in the middle closes the
/// connection.
pub struct ResponseBody {
    body: Incoming,
    /// The bytes of an event stream are not limited in sum: its reader limits each event, and reads no more off the
    /// connection than it asks for. [`ResponseBody::collect`] sets a limit.
    budget: Option<BodyBudget>,
    /// The library reports a broken connection once, and an orderly end after that.
    is_broken: bool,
}

impl ResponseBody {
    pub(crate) fn new(body: Incoming, budget: Option<BodyBudget>) -> Self {
        Self { body, budget, is_broken: false }
    }

    /// The next piece, never empty, if it comes within `idle`; `None` at the orderly end. A dropped call loses nothing,
    /// and neither does one that ends with [`BodyError::Late`]: the next call goes on where it stopped.
    pub async fn next(&mut self, idle: Duration) -> Result<Option<Bytes>, BodyError> {
        self.next_until(deadline(idle)).await
    }

    async fn next_until(&mut self, deadline: Instant) -> Result<Option<Bytes>, BodyError> {
        if self.is_broken {
            return Err(BodyError::Broken);
        }
        loop {
            let frame = match timeout_at(deadline, self.body.frame()).await {
                Err(_) => return Err(BodyError::Late),
                Ok(None) => return Ok(None),
                Ok(Some(Err(_))) => {
                    self.is_broken = true;
                    return Err(BodyError::Broken);
                }
                Ok(Some(Ok(frame))) => frame,
            };
            if let Ok(data) = frame.into_data()
                && !data.is_empty()
            {
                return Ok(Some(data));
            }
            // Empty frames do not extend the timeout.
            if Instant::now() >= deadline {
                return Err(BodyError::Late);
            }
        }
    }

    /// Reads what is left of it, at most `maximum` bytes, within `total`.
    pub async fn collect(mut self, maximum: usize, total: Duration) -> (Bytes, BodyEnd) {
        if let Some(budget) = &mut self.budget {
            budget.bound(maximum);
        }
        let mut pieces = Collected::default();
        let deadline = deadline(total);
        loop {
            let piece = match self.next_until(deadline).await {
                Ok(Some(piece)) => piece,
                Ok(None) => return (pieces.whole(), BodyEnd::Complete),
                Err(BodyError::Broken) => return (pieces.whole(), BodyEnd::Broken),
                Err(BodyError::Late) => return (pieces.whole(), BodyEnd::Late),
            };
            let left = maximum - pieces.len();
            if piece.len() > left {
                pieces.add(piece.slice(..left));
                return (pieces.whole(), BodyEnd::Cut);
            }
            pieces.add(piece);
        }
    }
}

fn deadline(time: Duration) -> Instant {
    let now = Instant::now();
    now.checked_add(time).unwrap_or(now + LONGEST_TIMEOUT)
}

/// The pieces so far. Most bodies come in one piece, which need not be copied.
#[derive(Default)]
struct Collected {
    first: Bytes,
    /// The first piece and all others, once there is a second one.
    joined: BytesMut,
}

impl Collected {
    fn len(&self) -> usize {
        self.first.len().max(self.joined.len())
    }

    fn add(&mut self, piece: Bytes) {
        if self.first.is_empty() {
            self.first = piece;
            return;
        }
        if self.joined.is_empty() {
            self.joined.reserve(self.first.len() + piece.len());
            self.joined.extend_from_slice(&self.first);
        }
        self.joined.extend_from_slice(&piece);
    }

    fn whole(self) -> Bytes {
        if self.joined.is_empty() { self.first } else { self.joined.freeze() }
    }
}

impl fmt::Debug for ResponseBody {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ResponseBody").finish_non_exhaustive()
    }
}
